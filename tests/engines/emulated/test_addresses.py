"""Kernels stay inside their arrays; all kinds by hand: addresses.py."""

import addresses
import pytest


def test_searches_of_parts():
    if addresses.runtime() is None:
        pytest.skip("no AddressSanitizer")
    done = addresses.run(["between:hub"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "between:hub: right" in done.stdout

"""The way in by stdin and stdout."""

import os
import socket
import sys
import threading

import pytest

from distbfs.service.doors import standard_streams


def test_nothing_is_read_before_the_service_is_ready(monkeypatch):
    inside, outside = os.pipe()
    with os.fdopen(inside) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        os.write(outside, b"a request\n")
        os.close(outside)
        ready = threading.Event()
        with standard_streams(ready) as door:
            door.settimeout(0.2)
            with pytest.raises(socket.timeout):
                door.recv(100)
            ready.set()
            door.settimeout(10)
            assert door.recv(100) == b"a request\n"
            assert door.recv(100) == b""

"""``distbfs sweep`` where there is no device, and over an emulated one's results."""

import pytest
from commands import here, on

from distbfs.cli.sweep import print_sweep
from distbfs.options import Knobs


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "give one of STORE, --kronecker, --uniform and --road"),
        (("--kronecker", 5, "--road", 9), "give one of STORE"),
        (("--kronecker", 5, "--knobs", "k1,x"), "knob 'x'; allowed: all, or some of"),
    ],
)
def test_refusals(words, said):
    assert said in here("sweep", *words).refusal


def test_no_device_and_no_ranks():
    done = here("sweep", "--kronecker", 5)
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("distbfs: no CUDA")
    assert "one process" in on(2, "sweep", "--kronecker", 5).refusal


def test_what_is_printed(capsys):
    trial = {"knob": "ext", "value": False, "seconds": 0.002, "best_seconds": 0.001}
    values = {"trials": [trial], "auto_seconds": 0.004, "best_seconds": 0.001}
    print_sweep(values, Knobs(k1=8, k2=0.05, ext=False))
    out = capsys.readouterr().out
    assert out.splitlines()[1].split() == ["ext", "False", "2", "1"]
    assert out.splitlines()[-1].endswith("k1=8,k2=0.05,ext=no")

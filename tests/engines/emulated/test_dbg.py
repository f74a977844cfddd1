import sys
from conftest import *
import test_between_kernels as t, numpy as np
from graphs import Tuples
import pytest
LARGE=t.LARGE
@pytest.mark.parametrize("th",[0,4,LARGE])
@pytest.mark.parametrize("d",["push","pull"])
def test_p(device, th,d):
    t.streamed(t.GRAPHS["path"],4,devices=2,threshold=th, direction=d)
def test_x(device, monkeypatch):
    n=16
    src=Tuples(n, list(range(n-1)), list(range(1,n)))
    t.streamed(src,4,devices=2,threshold=LARGE, direction="push")

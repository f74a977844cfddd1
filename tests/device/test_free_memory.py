"""Free device memory that an allocation can count on; see distbfs.device.cuda."""

from types import SimpleNamespace

import pytest

from distbfs.device import cuda


class Pool:
    """Memory of a device, ``unused`` bytes of it in a pool in pieces."""

    def __init__(self, free, unused):
        self.free, self.unused = free, unused

    def free_all_blocks(self):
        self.free, self.unused = self.free + self.unused, 0


@pytest.mark.parametrize(
    ("need", "available", "unused"), [(80, 100, 50), (101, 150, 0), (151, 150, 0)]
)
def test_memory_in_pieces_is_returned_first(monkeypatch, need, available, unused):
    pool = Pool(100, 50)
    nothing = Pool(0, 0)
    runtime = SimpleNamespace(memGetInfo=lambda: (pool.free, 1000))
    library = SimpleNamespace(
        cuda=SimpleNamespace(runtime=runtime),
        get_default_memory_pool=lambda: pool,
        get_default_pinned_memory_pool=lambda: nothing,
    )
    monkeypatch.setattr(cuda, "cupy", lambda: library)
    assert cuda.available(need) == available
    assert pool.unused == unused

"""Memory of devices that ranks share which are threads of one process."""

import numpy as np

from distbfs.device import cuda


class ThreadPeers:
    """As ``exchange.peers.PeerGroup``."""

    def __init__(self, world, devices):
        self._world = world

    def share(self, sizes, what):
        arrays = [cuda.cupy().zeros(size, np.uint8) for size in sizes]
        addresses = np.array([array.data.ptr for array in arrays], dtype=np.int64)
        table = np.stack(self._world.allgather(addresses), axis=1).ravel()
        return arrays, [table] * len(arrays)

    def close(self):
        self._world.barrier()

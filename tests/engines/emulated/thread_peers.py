"""What devices of ranks share, and copy, where ranks are threads of one process."""

import numpy as np

from distbfs.device import cuda
from distbfs.partition.layout import in_turn


class ThreadPeers:
    """As ``exchange.peers.PeerGroup``."""

    def __init__(self, world, devices):
        self._world = world

    def share(self, sizes, what):
        arrays = [cuda.cupy().zeros(size, np.uint8) for size in sizes]
        addresses = np.array([array.data.ptr for array in arrays], dtype=np.int64)
        every = self._world.allgather(addresses)
        turns = in_turn([len(of_rank) for of_rank in every])
        table = np.array([every[rank][k] for rank, k in turns])
        return arrays, [table] * len(arrays)

    def close(self):
        self._world.barrier()


class ThreadLink:
    """As ``exchange.nccl_link.Link``, for ``copy``."""

    def __init__(self, world, devices):
        counts = [len(x) for x in world.allgather(np.array(devices, np.int64))]
        first = sum(counts[: world.rank])
        self._world, self._own = world, range(first, first + len(devices))

    def copy(self, copies):
        sent = [
            (x.source, target, np.array(x.values))
            for x in copies
            if x.source in self._own
            for target in x.targets
        ]
        arrived = {}
        for of_rank in self._world._share("copy", sent):
            for source, target, values in of_rank:
                arrived.setdefault((source, target), []).append(values)
        for x in copies:
            for target in set(x.targets) & set(self._own):
                values = arrived[x.source, target].pop(0)
                assert values.dtype == x.into[target].dtype
                assert values.shape == x.into[target].shape
                x.into[target][...] = values

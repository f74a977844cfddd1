"""Many searches of a whole graph on one device, whose results are wanted once."""

from dataclasses import replace

import numpy as np

from distbfs.device import cuda
from distbfs.multisearch.cuda_bits import SEARCHES
from distbfs.multisearch.domain_bits import DomainBitSearches
from distbfs.multisearch.part_loop import Wanted
from distbfs.ranks.world import SoloWorld


class BitSearches(DomainBitSearches):
    """Searches of which ``search`` returns the last; sums are of all of them."""

    def __init__(
        self, graph, *, width=4 * SEARCHES, pull_edges=None, levels=True, **wanted
    ):
        self.results = Wanted(levels, **{"counts": False, **wanted})
        super().__init__(SoloWorld(), [graph], pull_edges=pull_edges)
        self.allocate(width // SEARCHES)

    def search(self, sources, limit=None, stop=None):
        """Search from ids; return this."""
        wanted = replace(self.results, limit=limit, stop=stop)
        self.results = replace(self.results, continued=True)
        self.run(np.asarray(sources, dtype=np.int64), wanted)
        return self

    def levels_by_id(self):
        """Return the levels of all vertices, CuPy int32 [k, n]."""
        out = np.empty((self._count, self._layout.n), np.int32)
        self.put_levels(out)
        return cuda.cupy().asarray(out)

    def batches(self, sources):
        """Yield (first, last + 1, these searches) over all sources."""
        for first in range(0, len(sources), self.width):
            last = min(first + self.width, len(sources))
            yield first, last, self.search(sources[first:last])

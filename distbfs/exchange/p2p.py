"""The exchange through memory that the devices of one host share (NVLink or PCIe).

Source: Pan, Pearce, Owens 2018, Section V.  Every rank ORs one slice of the masks of
all and writes it to all; vertices are copied into a window at their owner, in rounds
where they are more than it holds.  Between the steps the ranks meet by MPI.  This
serves the level loop on the host; levels that run without it do the same in kernels
(``engines/cuda/kernels/level.cu``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.device import cuda
from distbfs.device.peers import foreign_array
from distbfs.errors import LaunchError
from distbfs.exchange.base import Traffic, need_device_arrays
from distbfs.exchange.local import LocalPhase
from distbfs.exchange.messages import Messages
from distbfs.exchange.peers import PeerGroup, peer_problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from distbfs.options import SearchOptions
    from distbfs.partition.layout import Placement
    from distbfs.types import Array, Words, World

WINDOW = 1 << 20  # items that a rank has room for from each other rank
MOST_BYTES = 8  # of a value that ``max_delegates`` takes


class P2pExchange:
    """Serves the ranks of one host; see ``base.Exchange``.  Making one is collective.

    Arrays that are returned stay as they are until the level after the next one.
    ``traffic.mask_bytes`` counts each mask once.
    """

    name = "p2p"
    on_device = True

    def __init__(
        self,
        world: World,
        placement: Placement,
        delegates: int,
        options: SearchOptions,
        *,
        item: npt.DTypeLike = np.uint32,
        on_device: bool = True,
    ) -> None:
        need_device_arrays(self.name, on_device)
        self._local = LocalPhase(world, placement, delegates, item, on_device=True)
        self._device = int(cuda.cupy().cuda.Device())
        if problem := peer_problem(world, [self._device]):
            raise LaunchError(f"exchange 'p2p': {problem}; use --exchange host")
        self.traffic = Traffic()
        self._world, self._placement, self._options = world, placement, options
        self._words = words = (delegates + 63) // 64
        ranks = world.size
        self._slot = min(WINDOW, options.chunk_elements)
        sizes = {
            "mask": 8 * words,
            "result0": 8 * words,
            "result1": 8 * words,
            "values": MOST_BYTES * delegates,
            "window": self._slot * ranks * self._local.item.itemsize,
        }
        self._at, total = {}, 0
        for name, size in sizes.items():
            self._at[name] = total
            total += -(-size // 256) * 256
        self._group = PeerGroup(world, [self._device])
        self._memory, [self._bases] = self._group.share([total], "shared by ranks")
        self._turn = 0
        self._closed = False
        self._messages: Messages | None = None

    def _view(self, rank: int, name: str, count: int, dtype: Any) -> Any:
        """Return an array in the shared memory of a rank."""
        address = int(self._bases[rank]) + self._at[name]
        return foreign_array(address, count, dtype)

    def _settle(self) -> None:
        """Wait until all ranks have done what they had to do on their devices."""
        cuda.cupy().cuda.get_current_stream().synchronize()
        self._world.barrier()

    def start_masks(self, masks: Sequence[Words]) -> None:
        """Reduce the masks of this rank and show the result to the others."""
        mask = masks[0] if len(masks) == 1 else self._local.reduce_masks(masks)
        if self._words:
            self._view(self._world.rank, "mask", self._words, np.uint64)[...] = mask
        if self._world.size > 1:
            self.traffic.mask_bytes += mask.nbytes

    def finish_masks(self) -> Words:
        """Return the OR over all parts of all ranks; collective."""
        self._turn ^= 1
        name, words, ranks = f"result{self._turn}", self._words, self._world.size
        self._settle()
        step, me = -(-words // ranks), self._world.rank
        mine = slice(min(me * step, words), min((me + 1) * step, words))
        if mine.stop > mine.start:
            own = self._view(me, "mask", words, np.uint64)[mine].copy()
            for rank in range(ranks):
                if rank != me:
                    other = self._view(rank, "mask", words, np.uint64)[mine]
                    self._local.xp.bitwise_or(own, other, out=own)
            for rank in range(ranks):
                self._view(rank, name, words, np.uint64)[mine] = own
        self._settle()
        return self._view(me, name, words, np.uint64)

    def start_normals(self, bins: Sequence[Sequence[Array]]) -> None:
        """Tell the other ranks the counts; collective."""
        self._messages = found = Messages(
            self._world, self._placement, self._local, self._options, bins
        )
        for place, arrays in found.copies:
            self._local.fill(place, arrays)
        found.tell(self.traffic)

    def finish_normals(self) -> list[list[tuple[int, Array]]]:
        """Return for each part what arrived: (source rank, numbers); collective."""
        found, self._messages = self._messages, None
        if found is None:
            return [[] for _ in self._local.parts]
        out = [_pieces(arrays, self._slot) for arrays in found.outgoing]
        into: list[list[Array]] = [[] for _ in out]
        for rank, place in found.receives:
            into[rank].append(place)
        back = [_pieces(arrays, self._slot) for arrays in into]
        most = np.array([max((len(rounds) for rounds in out), default=0)])
        for turn in range(int(self._world.allreduce(most, "max")[0])):
            for rank, rounds in enumerate(out):
                if turn < len(rounds):
                    self._put(rounds[turn], self._window(rank, self._world.rank))
            self._settle()
            for rank, rounds in enumerate(back):
                if turn < len(rounds):
                    self._take(rounds[turn], self._window(self._world.rank, rank))
            self._settle()
        return found.received

    def _window(self, owner: int, source: int) -> Any:
        """Return the room that a rank has for what comes from another."""
        whole = self._view(
            owner, "window", self._slot * self._world.size, self._local.item
        )
        return whole[source * self._slot : (source + 1) * self._slot]

    @staticmethod
    def _put(arrays: Sequence[Array], window: Any) -> None:
        start = 0
        for array in arrays:
            window[start : start + array.size] = array
            start += array.size

    @staticmethod
    def _take(places: Sequence[Array], window: Any) -> None:
        start = 0
        for place in places:
            place[...] = window[start : start + place.size]
            start += place.size

    def max_delegates(self, values: Sequence[Array]) -> Array:
        """Return the maximum over all parts of all ranks, a new array; collective."""
        result = self._local.reduce_max(values)
        count, kind, me = result.size, result.dtype, self._world.rank
        if not count or self._world.size == 1:
            return result
        self._view(me, "values", count, kind)[...] = result
        self._settle()
        for rank in range(self._world.size):
            if rank != me:
                other = self._view(rank, "values", count, kind)
                self._local.xp.maximum(result, other, out=result)
        self._settle()
        return result

    def close(self) -> None:
        """Free the memory when all ranks are done with it; collective."""
        if self._closed:
            return
        self._closed = True
        cuda.cupy().cuda.get_current_stream().synchronize()
        self._group.close()
        self._memory = []
        self._local.free()


def _pieces(arrays: Sequence[Array], most: int) -> list[list[Array]]:
    """Return arrays cut into rounds of up to ``most`` elements together."""
    rounds: list[list[Array]] = []
    room = 0
    for array in arrays:
        start = 0
        while start < array.size:
            if not room:
                rounds.append([])
                room = most
            piece = array[start : start + room]
            rounds[-1].append(piece)
            start += piece.size
            room -= piece.size
    return rounds

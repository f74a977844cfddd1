"""The level loop of a search between domains: the only one outside an engine.

Source: Pan, Pearce, Owens 2018, Sections IV and V (Figs. 3 and 4). It does not depend
on the hardware of the engine or the number of ranks. Sums over all domains decide
whether a collective is called, so all ranks agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from distbfs.distinct import distinct
from distbfs.engines.base import COUNTS, OUTER, WHOLE, Targets, Until, Work
from distbfs.engines.streamed import has_streams, launch_problem
from distbfs.errors import LaunchError, OutOfMemory, SearchStopped
from distbfs.exchange.traffic import KINDS, by_kind
from distbfs.partition.delegates import DelegateNumbers
from distbfs.partition.layout import Placement
from distbfs.search.direction import DirectionPolicy
from distbfs.search.parents import ParentCost, complete_parents
from distbfs.search.runners.base import Found, Runner
from distbfs.timing import Stopwatch, kept
from distbfs.types import Ids

if TYPE_CHECKING:
    from distbfs.engines.base import DomainSearch
    from distbfs.engines.cuda.xbfs.between_loop import BetweenLoop
    from distbfs.exchange.base import Exchange
    from distbfs.exchange.bins import Bins
    from distbfs.options import SearchOptions
    from distbfs.search.runners.streamed import StreamedLevels
    from distbfs.types import Array, Root, Stop, Words, World

UNTIMED = nullcontext()
WIDE = 1 << 62  # more vertices than there are
NOTHING_SENT: Ids = np.zeros(0, np.int64)


class Board:
    """Collects the offers of this rank's domains in a level (an ``Offer`` for each).

    The domains make their offers in turn. A transfer begins when all of them have made
    theirs. All ranks transfer normals first, then masks, in whatever order a domain
    makes its offers.
    """

    def __init__(self, exchange: Exchange, domains: int) -> None:
        self._exchange, self._domains = exchange, domains
        self._bins: list[Bins] = []
        self._masks: list[Words] = []
        self.sends = self.reduces = False

    def begin(self, *, sends: bool, reduces: bool) -> None:
        """Start a level; sends, reduces: whether normals, or masks, may be offered."""
        self.sends, self.reduces = sends, reduces
        self._bins, self._masks = [], []

    def normals(self, bins: Bins) -> None:
        """Offer the vertices that a domain found on other parts."""
        self._bins.append(bins)
        if len(self._bins) < self._domains:
            return
        if self.sends:
            self._exchange.start_normals(self._bins)
        self._start_masks()

    def bits(self, mask: Words) -> None:
        """Offer the delegates that a domain found."""
        self._masks.append(mask)
        self._start_masks()

    def _start_masks(self) -> None:
        """Start the reduction of masks, once all offers have been made."""
        # mutant: min(len(self._bins), len(self._masks)) -> len(self._masks)
        #   : test_steps_of_a_level_once_and_in_order
        offered = min(len(self._bins), len(self._masks))
        # mutant: == self._domains -> > 0 : test_steps_of_a_level_once_and_in_order
        if offered == self._domains and self.reduces:
            self._exchange.start_masks(self._masks)


class BetweenDomains(Runner):
    """Runs searches over the domains of this rank together with the other ranks.

    placement: placement of the parts on ranks, if ranks share domains
    why: the reason why a search is not one launch, although the exchange allows it, or
    ""

    The phases of a result are start, levels, parents and finish; with records or a
    trace, also those of levels: work, counts, advance, exchange, accept.
    """

    mode = "stepwise"

    def __init__(
        self,
        world: World,
        searches: Sequence[Any],
        exchange: Exchange,
        options: SearchOptions,
        placement: Placement | None = None,
    ) -> None:
        self._world = world
        self._searches: Sequence[DomainSearch] = searches
        self._exchange = exchange
        self._options = options
        part = searches[0].part
        self._layout = part.layout
        self._placement = placement or Placement(part.layout.parts, world.size)
        self._delegates = DelegateNumbers(part.delegates)
        some = self._delegates.count > 0
        self._policy = DirectionPolicy(searches[0].directions, options, delegates=some)
        self._board = Board(exchange, len(searches))
        self._counts = np.zeros(COUNTS + 1, dtype=np.int64)  # last: stop
        self._sums = self._counts[:-1]
        self._nothing: list[list[tuple[int, Array]]] = [[] for _ in searches]
        self._root, self._hidden = Work(), 0  # delegates that no level has found yet
        self._ahead = False  # may levels be launched before their counts?
        self._streamed: StreamedLevels | None = None
        self._loop: BetweenLoop | None = None
        self.why = ""
        if exchange.symmetric:
            self._loop, self.why = self._in_a_launch(searches[0])
        if self._loop is not None:
            self.mode = "resident"
        else:
            self._stream()
        leaves = any(search.leaves is not None for search in searches)
        leaves = bool(world.allreduce(np.array([leaves], np.int64), "max")[0])
        self._leaves_out = leaves  # in any domain

    @property
    def exchange(self) -> Exchange:
        """The exchange between the domains."""
        return self._exchange

    @property
    def captures(self) -> bool:
        """Whether the first search captures launches for the later ones."""
        return self._streamed is not None

    def _can_stream(self) -> bool:
        """Return whether levels can run ahead on streams, and that pays.

        They require a device for each part, and not too many parts.
        """
        streamed = self._searches[0].streamed and self._exchange.streamed
        return bool(streamed and has_streams(self._placement))

    def _stream(self) -> None:
        """Let levels run ahead on streams, if they can, from now on (collective).

        This connects the devices, which takes seconds.
        """
        if self._streamed is not None or not self._can_stream():
            return
        from distbfs.search.runners.streamed import (  # noqa: PLC0415 - of CUDA
            StreamedLevels,
        )

        searches: Sequence[Any] = self._searches
        streams = self._exchange.streams([int(search.device) for search in searches])
        domains = self._placement.domains
        self._streamed = StreamedLevels(searches, streams, domains, self._policy)

    def _in_a_launch(self, search: Any) -> tuple[BetweenLoop | None, str]:
        """Return the loop of one-launch searches, or None and a reason (collective)."""
        problem = launch_problem(
            self._placement,
            streamed=bool(self._searches[0].streamed),
            stepwise=self._options.stepwise,
        )
        if problem:
            return None, f"levels by NCCL: {problem}"
        ranks = self._placement.rank_of(np.arange(self._placement.parts))
        more = ranks, self._policy.forced, self._policy.share
        try:
            return search.loop(self._exchange.memory(), self._world, *more), ""
        except (OutOfMemory, LaunchError) as error:  # on all ranks
            return None, f"levels by NCCL: {error}"

    def _complete_parents(self) -> ParentCost:
        """Set the parents that parts did not find themselves (collective)."""
        return complete_parents(self._exchange, self._searches, self._streamed)

    def see(self, views: Sequence[Any]) -> None:
        """Restrict later searches to views; see ``runners.base.Runner``."""
        for search, view in zip(self._searches, views, strict=True):
            search.see(view)
        if self._streamed is not None:
            self._streamed.forget()

    def search(
        self,
        root: Root,
        *,
        records: bool = False,
        parents: bool = True,
        until: Until = WHOLE,
        stop: Stop | None = None,
    ) -> Found:
        """Search from one vertex id, or from several (collective).

        parents: False omits parents in this search
        until: the end of the search, equal on all ranks; results have no level beyond
        it
        stop: passed on all ranks or on none, called before each level; if it returns
        True on one, all ranks raise SearchStopped
        """
        clock = Stopwatch(self.trace)
        parents = parents and self._options.parents
        log: list[dict[str, Any]] | None = [] if records else None
        timed = clock if records or self.trace is not None else untimed
        to_the_end = until.depth is None and until.targets is None
        self._ahead = timed is untimed and stop is None and to_the_end
        whole = self._loop if self._ahead else None
        if whole is None:
            self._stream()
        with clock("start"):
            starts = self._searches if whole is None else [whole]
            self._start(root, until, starts, counting=records)
        if whole is not None:
            return self._whole(whole, clock, parents=parents)
        every = UNTIMED if timed is clock else clock("levels")
        stream: AbstractContextManager[None] = UNTIMED
        if self._streamed is not None:
            stream = self._streamed.levels()
        with every, stream:
            levels = self._levels(until, stop, timed, clock, log)
        self._world.doing = "parents"
        results: list[tuple[Any, Any]] = []
        if self._streamed is not None:  # they are corrected by ``wait``
            results = self._finish(clock)
        cost = ParentCost()
        # mutant: parents: -> parents and levels > 2:
        #   : test_levels_parents_and_where_searches_end
        if parents:
            with clock("parents"):
                cost = self._complete_parents()
            if log:
                # mutant: cost.bytes_sent -> 0 : test_records_of_what_is_sent
                log[-1]["bytes_sent"]["parents"] += cost.bytes_sent
                log[-1]["messages_sent"]["parents"] += cost.messages_sent
        if self._streamed is None:
            results = self._finish(clock)
        else:
            with clock("parents"):
                self._streamed.wait()
        for search in self._searches:
            if search.leaves is not None:
                search.leaves.check()
        self._world.doing = ""
        return Found(
            [level for level, _ in results],
            [parent if parents else None for _, parent in results],
            levels,
            records=log or [],
            phases=clock.seconds,
            parent_cost=cost,
        )

    def _finish(self, clock: Stopwatch) -> list[tuple[Any, Any]]:
        """Return levels and parents of all domains of this rank."""
        with clock("finish"):
            return [search.finish() for search in self._searches]

    def _whole(self, loop: BetweenLoop, clock: Stopwatch, *, parents: bool) -> Found:
        """Run all levels of a started search in one launch."""
        traffic, search = self._exchange.traffic, self._searches[0]
        sent = traffic.sent
        self._world.doing = "levels in one launch"
        with clock("levels"):
            hidden = self._hidden - self._root.delegates
            levels, seconds = loop.run(hidden, traffic, parents=parents)
        with clock("finish"):
            level, parent = search.finish()
        self._world.doing = ""
        at = KINDS.index("parents")
        own = (traffic.sent - sent).sum(axis=0)[:, at].tolist()
        return Found(
            [level],
            [parent if parents else None],
            levels,
            seconds,
            phases=clock.seconds,
            parent_cost=ParentCost(bytes_sent=own[0], messages_sent=own[1]),
        )

    def describe(self) -> dict[str, Any]:
        """Return the runner's hardware and settings, for reports."""
        exchange = self._exchange.name
        return {"method": "parts", "mode": self.mode, "exchange": exchange}

    def close(self) -> None:
        """Free buffers and pending requests."""
        self._exchange.close()

    def _levels(
        self,
        until: Until,
        stop: Stop | None,
        timed: Callable[[str], AbstractContextManager[None]],
        clock: Stopwatch,
        log: list[dict[str, Any]] | None,
    ) -> int:
        """Run all levels; return the number of nonempty ones.

        log: receives a record of each level, unless None: counts over all ranks, sent
        data and seconds of this rank. bytes_sent, messages_sent: by kind, see ``KINDS``
        in exchange/traffic.py; what is sent for parents after the last level counts
        towards that level. domains: "part", "bytes_sent" and "messages_sent" of each
        domain, if a rank serves several; data that the rank sends once for all of them
        is not included. Further counts of the engine, by name, come last.
        """
        world, policy = self._world, self._policy
        last, aimed = until.depth, until.targets is not None
        visits, extras = self._searches[0].visits, self._searches[0].extras
        levels = 0
        before: dict[str, float] = {}
        traffic, sent = self._exchange.traffic, NOTHING_SENT
        while True:
            world.doing = f"level {levels}"
            if log is not None:
                before = dict(clock.seconds)
            work, stopped = self._all_work(stop, timed, first=not levels, aimed=aimed)
            if not work.normals + work.delegates:
                return levels
            # mutant: levels == -> levels - 1 ==
            #   : test_levels_parents_and_where_searches_end
            # mutant: not work.targets -> work.targets < 2
            #   : test_levels_parents_and_where_searches_end
            if levels == last or (aimed and not work.targets):
                return levels + 1
            if stopped:
                world.doing = ""
                raise SearchStopped(f"the search was stopped at level {levels}")
            levels += 1
            self._hidden -= work.delegates
            choice = policy.choose(work)
            if timed is not untimed:
                sent = traffic.sent
            with kept(self.trace, "level", level=levels) as span:
                checks = self._level(work, choice, timed, counting=log is not None)
                if span is not None:
                    span.update(by_kind((traffic.sent - sent).sum(axis=0)))
            if log is not None:
                sent = traffic.sent - sent
                every = np.array(checks, dtype=np.int64).sum(axis=0)
                sums = world.allreduce(every).tolist()
                counts = dict(zip((*visits, *extras), sums, strict=True))
                log.append(
                    {
                        "level": levels,
                        "directions": {visits[0]: "push", **choice},
                        "normals": work.normals,
                        "delegates": work.delegates,
                        "checks": {name: counts.pop(name) for name in visits},
                        **by_kind(sent.sum(axis=0)),
                        "seconds": {
                            k: v - before.get(k, 0) for k, v in clock.seconds.items()
                        },
                        "domains": self._by_domain(sent),
                        **counts,
                    }
                )

    def _all_work(
        self,
        stop: Stop | None,
        timed: Callable[[str], AbstractContextManager[None]],
        *,
        first: bool,
        aimed: bool,
    ) -> tuple[Work, bool]:
        """Return (work of all domains, whether a rank requests a stop).

        first: whether no level has run yet, so that levels on streams need not count
        the root; aimed: whether targets are counted
        """
        world, counts = self._world, self._counts
        # mutant: stop is not None and stop() -> 0
        #   : test_a_stopped_search_harms_no_later_one
        counts[-1] = stop is not None and stop()
        if self._streamed is not None:
            with timed("work"):
                work = self._root if first else self._streamed.work()
                if first and aimed:
                    at = Work._fields.index("targets")
                    left = sum(int(search.work()[at]) for search in self._searches)
                    left = world.allreduce(np.array([left]))[0]
                    work = work._replace(targets=int(left))
            if stop is None:
                return work, False
            with timed("counts"):
                return work, bool(world.allreduce(counts[-1:])[0])
        with timed("work"):
            np.copyto(self._sums, self._searches[0].work())
            for search in self._searches[1:]:
                np.add(self._sums, search.work(), out=self._sums)
        with timed("counts"):
            # mutant: world.allreduce(counts).tolist() ->
            #   *world.allreduce(counts).tolist()[:-1], int(counts[-1]) :
            #   test_one_rank_stops_all
            *sums, stopped = world.allreduce(counts).tolist()
        return Work._make(sums), bool(stopped)

    def _by_domain(self, sent: Ids) -> list[dict[str, Any]]:
        """Return the traffic of each domain of this rank, if it has several."""
        if len(self._searches) == 1:
            return []
        return [
            {"part": search.part.index, **by_kind(own)}
            for search, own in zip(self._searches, sent[:-1], strict=True)
        ]

    def _start(
        self,
        root: Root,
        until: Until,
        starts: Sequence[DomainSearch | BetweenLoop],
        *,
        counting: bool,
    ) -> None:
        """Start the search in every domain; set the first work, equal on all ranks.

        starts: the searches to start, one for each domain of this rank
        """
        self._policy.start()
        self._hidden = self._delegates.count
        targets: list[Targets | None] = [None] * len(self._searches)
        if until.targets is not None:
            targets = self._targets(np.setdiff1d(until.targets, root))
        own: list[Root | None]
        delegate: Root | None
        if isinstance(root, np.ndarray):
            own, delegate = self._roots_of_set(root)
        else:
            number = self._delegates.one(root)
            delegate = None if number == -1 else number
            normal = delegate is None
            self._root = Work(int(normal), int(not normal), int(normal), open=WIDE)
            part, local = self._layout.part_of(root), self._layout.local_of(root)
            own = [
                local if normal and search.part.index == part else None
                for search in self._searches
            ]
        for start, mine, wanted in zip(starts, own, targets, strict=True):
            start.start(mine, delegate, counting=counting, targets=wanted)

    def _roots_of_set(self, roots: Ids) -> tuple[list[Root | None], Ids]:
        """Set the first work; return own roots of each domain, and all delegates.

        roots: int64 [k], ascending
        """
        numbers = self._delegates.of(roots)
        normals, delegates = roots[numbers < 0], numbers[numbers >= 0]
        self._root = Work(len(normals), len(delegates), len(normals), open=WIDE)
        owners, local = self._layout.part_of(normals), self._layout.local_of(normals)
        # mutant: == search.part.index -> >= 0 : test_domain_contract::test_sets
        own = [local[owners == search.part.index] for search in self._searches]
        return [*own], delegates

    def _targets(self, ids: Ids) -> list[Targets | None]:
        """Return the targets that each domain of this rank owns (collective).

        ids: the targets, int64 [k], each once, without roots
        """
        owners, delegates = self._layout.part_of(ids), self._delegates.of(ids)
        numbers = []
        for search in self._searches:
            own = (owners == search.part.index) & (delegates < 0)
            numbers.append(search.part.numbers_of(self._layout.local_of(ids[own])))
        on = np.zeros(0, np.int64)  # delegates of targets that are left out
        if self._leaves_out:
            on = self._hung(numbers)
        of_leaves, owners_on = self._delegates.of(on), self._layout.part_of(on)
        targets: list[Targets | None] = []
        for search, some in zip(self._searches, numbers, strict=True):
            own = (owners == search.part.index) & (delegates >= 0)
            hung = of_leaves[owners_on == search.part.index]
            # mutant: some, delegates[own], hung -> numbers, delegates[:0]
            #   : test_levels_parents_and_where_searches_end
            targets.append(Targets(some, delegates[own], hung))
        return targets

    def _hung(self, numbers: list[Ids]) -> Ids:
        """Remove targets that are leaves; return their delegates' ids (collective).

        The ids are those of all ranks.

        numbers: targets of each domain of this rank, changed in place
        """
        hung = [np.zeros(0, np.int64)]
        for k, search in enumerate(self._searches):
            if search.leaves is not None:
                numbers[k], on = search.leaves.hung(numbers[k])
                hung.append(on)
        # mutant: self._world.allgather(np.concatenate(hung)) -> [np.concatenate(hung)]
        #   : test_ends
        return distinct(np.concatenate(self._world.allgather(np.concatenate(hung))))

    def _level(
        self,
        work: Work,
        choice: dict[str, Any],
        timed: Callable[[str], AbstractContextManager[None]],
        *,
        counting: bool,
    ) -> list[Sequence[int]]:
        """Run one level; return edge checks and ``extras`` of each domain of this rank.

        work: summed over all ranks, so that all agree when there is nothing to exchange
        counting: whether to count edge checks
        """
        pulls = bool(work.nn) and choice.get(OUTER) == "pull"
        if self._streamed is not None:
            with timed("advance"):
                return self._streamed.level(
                    pull=pulls,
                    reduces=self._hidden > 0,
                    counting=counting,
                    ahead=self._ahead,
                )
        exchange, board = self._exchange, self._board
        board.begin(
            sends=bool(work.nn) and not pulls,
            reduces=self._hidden > 0 and bool(work.dd_forward or work.nd_forward),
        )
        with timed("advance"):
            checks = [search.advance(choice, board) for search in self._searches]
        with timed("exchange"):
            mask = exchange.finish_masks() if board.reduces else None
            arrived = exchange.finish_normals() if board.sends else self._nothing
            if board.sends:
                arrived = self._rest(arrived)
        if pulls:
            with timed("pull"):
                self._pull(mask)
            return checks
        with timed("accept"):
            for search, normals in zip(self._searches, arrived, strict=True):
                search.accept(mask, normals)
        return checks

    def _pull(self, mask: Words | None) -> None:
        """Exchange questions of unvisited vertices, and answers; accept the results."""
        searches, arrived = self._searches, self._answered()
        while self._more():
            for search, replies in zip(searches, arrived, strict=True):
                search.take((), replies)
            arrived = self._answered()
        for search, replies in zip(searches, arrived, strict=True):
            search.accept(mask, (), replies)

    def _answered(self) -> list[list[tuple[int, Array]]]:
        """Exchange questions and answers; return those that each domain received."""
        searches, exchange = self._searches, self._exchange
        with exchange.traffic.of("questions"):
            exchange.start_normals([search.questions() for search in searches])
            asked = exchange.finish_normals()
        answers = [s.answers(x) for s, x in zip(searches, asked, strict=True)]
        # mutant: answers -> questions : test_records_tell_kinds_and_domains
        with exchange.traffic.of("answers"):
            exchange.start_normals(answers)
            return exchange.finish_normals()

    def _rest(
        self, arrived: list[list[tuple[int, Array]]]
    ) -> list[list[tuple[int, Array]]]:
        """Send items for which boxes had no room; return those of the last round.

        arrived: items that were received in the first round
        """
        while self._more():
            for search, normals in zip(self._searches, arrived, strict=True):
                search.take(normals)
            self._exchange.start_normals([search.rest() for search in self._searches])
            arrived = self._exchange.finish_normals()
        return arrived

    def _more(self) -> bool:
        """Return whether a domain of any rank has more to send in this level."""
        if not self._searches[0].in_rounds:
            return False
        left = [search.more() for search in self._searches]
        return bool(self._world.allreduce(np.array([max(left)]), "max")[0])


def untimed(_: str) -> AbstractContextManager[None]:
    """Return a context that does nothing."""
    return UNTIMED

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

from distbfs.device import cuda
from distbfs.distinct import distinct
from distbfs.engines.base import (
    ASKED,
    COUNTS,
    OUTER,
    OWN,
    Query,
    Targets,
    Until,
    Work,
)
from distbfs.engines.streamed import has_streams, launch_problem
from distbfs.errors import LaunchError, OutOfMemory, SearchStopped
from distbfs.exchange.traffic import by_kind
from distbfs.partition.delegates import DelegateNumbers
from distbfs.partition.layout import Placement
from distbfs.search.direction import DirectionPolicy
from distbfs.search.runners.base import Found, Runner
from distbfs.timing import Stopwatch, kept
from distbfs.types import Ids

if TYPE_CHECKING:
    from distbfs.engines.base import DomainSearch
    from distbfs.engines.cuda.xbfs.between_loop import BetweenLoop
    from distbfs.exchange.base import Exchange
    from distbfs.options import SearchOptions
    from distbfs.search.runners.streamed import StreamedLevels
    from distbfs.types import Array, Root, Stop, World

    Received = list[list[tuple[int, Array]]]  # of each domain: source rank, items

UNTIMED = nullcontext()
WIDE = 1 << 62  # more vertices than there are
NOTHING_SENT: Ids = np.zeros(0, np.int64)


class BetweenDomains(Runner):
    """Runs searches over the domains of this rank together with the other ranks.

    placement: placement of the parts on ranks, if ranks share domains
    devices: the devices of this rank, which time its searches, each once; none for the
    clock of the host
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
        devices: Sequence[int] = (),
    ) -> None:
        self._world = world
        self._searches: Sequence[DomainSearch] = searches
        self.exchange = exchange
        self._options = options
        self._devices = sorted(set(devices))
        self._clock = cuda.DeviceClock(self._devices) if devices else None
        part = searches[0].part
        self._layout = part.layout
        self._placement = placement or Placement(part.layout.parts, world.size)
        self._delegates = DelegateNumbers(part.delegates)
        some = self._delegates.count > 0
        self._policy = DirectionPolicy(searches[0].directions, options, delegates=some)
        self._counts = np.zeros(COUNTS + 1, dtype=np.int64)  # last: stop
        self._sums = self._counts[:-1]
        self._nothing: Received = [[] for _ in searches]
        self._root, self._hidden = Work(), 0  # delegates that no level has found yet
        self._ahead = False  # may levels be launched before their counts?
        self._timed: Callable[[str], AbstractContextManager[None]] = untimed
        self._streamed: StreamedLevels | None = None
        self._loop: BetweenLoop | None = None
        self.why = ""
        if exchange.symmetric:
            self._loop, self.why = self._in_a_launch(searches[0])
        if self._loop is not None:
            self.mode = "resident"
        else:
            self._stream()

    @property
    def captures(self) -> bool:
        """Whether the first search captures launches for the later ones."""
        return self._streamed is not None

    def _stream(self) -> None:
        """Let levels run ahead on streams, if they can, from now on (collective).

        They require a device for each part, and not too many parts. This connects the
        devices, which takes seconds.
        """
        streamed = self._searches[0].streamed and self.exchange.streamed
        streamed = streamed and has_streams(self._placement)
        if self._streamed is not None or not streamed:
            return
        from distbfs.search.runners.streamed import (  # noqa: PLC0415 - of CUDA
            StreamedLevels,
        )

        searches: Sequence[Any] = self._searches
        streams = self.exchange.streams([int(search.device) for search in searches])
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
            return search.loop(self.exchange.memory(), self._world, *more), ""
        except (OutOfMemory, LaunchError) as error:  # on all ranks
            return None, f"levels by NCCL: {error}"

    def _complete_parents(self) -> None:
        """Set the parents that parts did not find themselves (collective).

        A vertex found inside a part has its parent there; a vertex that is sent carries
        its parent. A delegate has an owner like any vertex; if the owner did not find
        it, the parts that found it know its parent. Source: Pan, Pearce, Owens 2018,
        Section VI-A3.
        """
        first = self._searches[0]
        if first.parents == OWN or not first.part.delegate_count:
            return
        if self._streamed is not None:
            self._streamed.complete()
        elif first.parents == ASKED:
            for turn in range(first.parent_rounds):
                self._ask_parents(turn)
        else:
            self._share_largest_parents()

    def _ask_parents(self, turn: int) -> None:
        """Ask the parts that found delegates which their owner did not find."""
        searches, exchange = self._searches, self.exchange
        with exchange.traffic.of("parents"):
            exchange.start_normals([x.ask_parents(turn) for x in searches])
            asked = zip(searches, exchange.finish_normals(), strict=True)
            exchange.start_normals([x.answer_parents(some) for x, some in asked])
            answers = exchange.finish_normals()
        for search, arrived in zip(searches, answers, strict=True):
            search.take_parents(arrived)

    def _share_largest_parents(self) -> None:
        """Give all parts the largest parents that any of them knows (collective)."""
        largest = np.maximum.reduce([x.delegate_parents() for x in self._searches])
        if self._world.size > 1:
            self.exchange.traffic.count(largest.nbytes, "parents")
        largest = self._world.allreduce(largest, "max")
        for search in self._searches:
            search.take_delegate_parents(largest)

    def see(self, views: Sequence[Any]) -> None:
        """Restrict later searches to views; see ``runners.base.Runner``."""
        for search, view in zip(self._searches, views, strict=True):
            search.see(view)
        if self._streamed is not None:
            self._streamed.forget()

    def answer(self, root: Root, query: Query) -> Found:
        """Search from one vertex id, or from several; see ``runners.base.Runner``."""
        if self._clock is None:
            return self._search(root, query)
        self._clock.begin()
        with cuda.memory_of("a search"):
            result = self._search(root, query)
        own = self._clock.end()
        taken = np.array([own if result.seconds is None else result.seconds])
        result.seconds = float(self._world.allreduce(taken, "max")[0])
        return result

    def _search(self, root: Root, query: Query) -> Found:
        """Search without the time of devices.

        Results have no level beyond ``until``.
        """
        until, records = query.until.beyond(root, self._layout.n), query.records
        clock, before = Stopwatch(self.trace), self.exchange.traffic.total("parents")
        parents = query.parents and self._options.parents
        log: list[dict[str, Any]] | None = [] if records else None
        every = records or self.trace is not None
        self._timed = clock if every else untimed
        to_the_end = until.depth is None and until.targets is None
        self._ahead = not every and query.stop is None and to_the_end
        whole = self._loop if self._ahead else None
        if whole is None:
            self._stream()
        with clock("start"):
            starts = self._searches if whole is None else [whole]
            self._start(root, until, starts, counting=records)
        if whole is not None:
            return self._whole(whole, clock, parents=parents)
        stream: AbstractContextManager[None] = UNTIMED
        if self._streamed is not None:
            stream = self._streamed.levels()
        with UNTIMED if every else clock("levels"), stream:
            levels = self._levels(until, query.stop, clock, log)
        self._world.doing = "parents"
        results: list[tuple[Any, Any]] = []
        if self._streamed is not None:  # they are corrected by ``wait``
            results = self._finish(clock)
        # mutant: parents: -> parents and levels > 2:
        #   : test_levels_parents_and_where_searches_end
        if parents:
            with clock("parents"):
                self._complete_parents()
            if log:
                sent, messages = self.exchange.traffic.total("parents")
                # mutant: sent - before[0] -> 0 : test_records_of_what_is_sent
                log[-1]["bytes_sent"]["parents"] += sent - before[0]
                log[-1]["messages_sent"]["parents"] += messages - before[1]
        if self._streamed is None:
            results = self._finish(clock)
        else:
            with clock("parents"):
                self._streamed.wait()
        for search in self._searches:
            if search.leaves:
                search.check()
        self._world.doing = ""
        return Found(
            [level for level, _ in results],
            [parent if parents else None for _, parent in results],
            levels,
            records=log or [],
            phases=clock.seconds,
        )

    def _finish(self, clock: Stopwatch) -> list[tuple[Any, Any]]:
        """Return levels and parents of all domains of this rank."""
        with clock("finish"):
            return [search.finish() for search in self._searches]

    def _whole(self, loop: BetweenLoop, clock: Stopwatch, *, parents: bool) -> Found:
        """Run all levels of a started search in one launch."""
        traffic, search = self.exchange.traffic, self._searches[0]
        self._world.doing = "levels in one launch"
        with clock("levels"):
            hidden = self._hidden - self._root.delegates
            levels, seconds = loop.run(hidden, traffic, parents=parents)
        with clock("finish"):
            level, parent = search.finish()
        self._world.doing = ""
        return Found(
            [level],
            [parent if parents else None],
            levels,
            seconds,
            phases=clock.seconds,
        )

    def describe(self) -> dict[str, Any]:
        """Return the runner's hardware and settings, for reports."""
        about = {"method": "parts", "mode": self.mode, "exchange": self.exchange.name}
        uuids = {"uuid": " ".join(cuda.uuids(self._devices))} if self._devices else {}
        return about | uuids

    def close(self) -> None:
        """Free buffers and pending requests, and unused memory of devices."""
        self.exchange.close()
        if self._devices:
            cuda.release()

    def _levels(
        self,
        until: Until,
        stop: Stop | None,
        clock: Stopwatch,
        log: list[dict[str, Any]] | None,
    ) -> int:
        """Run all levels; return the number of nonempty ones.

        log: receives a record of each level, unless None: counts over all ranks, sent
        data and seconds of this rank. bytes_sent, messages_sent: by kind, see
        ``KINDS`` in exchange/traffic.py; what is sent for parents after the last level
        counts towards that level. domains: "part", "bytes_sent" and "messages_sent" of
        each domain, if a rank serves several; data that the rank sends once for all of
        them is not included. Further counts of the engine, by name, come last.
        """
        world, policy = self._world, self._policy
        last, aimed = until.depth, until.targets is not None
        visits, extras = self._searches[0].visits, self._searches[0].extras
        levels = 0
        before: dict[str, float] = {}
        traffic, sent = self.exchange.traffic, NOTHING_SENT
        while True:
            world.doing = f"level {levels}"
            if log is not None:
                before = dict(clock.seconds)
            work, stopped = self._all_work(stop, first=not levels, aimed=aimed)
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
            if self._timed is clock:
                sent = traffic.sent
            with kept(self.trace, "level", level=levels) as span:
                checks = self._level(work, choice, counting=log is not None)
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
        self, stop: Stop | None, *, first: bool, aimed: bool
    ) -> tuple[Work, bool]:
        """Return (work of all domains, whether a rank requests a stop).

        first: whether no level has run yet, so that levels on streams need not count
        the root; aimed: whether targets are counted
        """
        world, counts, timed = self._world, self._counts, self._timed
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
            targets = self._targets(until.targets)
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

        Of targets that are leaves, their delegates are counted instead, wherever these
        are owned.

        ids: the targets, int64 [k], each once, without roots
        """
        layout, parts = self._layout, [search.part for search in self._searches]
        owners, delegates = layout.part_of(ids), self._delegates.of(ids)
        numbers, hung = [], [np.zeros(0, np.int64)]
        for search, part in zip(self._searches, parts, strict=True):
            own = (owners == part.index) & (delegates < 0)
            some = part.numbers_of(layout.local_of(ids[own]))
            if search.leaves:
                some, on = search.hung(some)
                hung.append(on)
            numbers.append(some)
        # mutant: self._world.allgather(np.concatenate(hung)) -> [np.concatenate(hung)]
        #   : test_ends
        on = distinct(np.concatenate(self._world.allgather(np.concatenate(hung))))
        of_leaves, owners_on = self._delegates.of(on), layout.part_of(on)
        targets: list[Targets | None] = []
        for part, some in zip(parts, numbers, strict=True):
            own = delegates[(owners == part.index) & (delegates >= 0)]
            # mutant: some, own, of_leaves -> some, own[:0], of_leaves
            #   : test_levels_parents_and_where_searches_end
            targets.append(Targets(some, own, of_leaves[owners_on == part.index]))
        return targets

    def _level(
        self, work: Work, choice: dict[str, Any], *, counting: bool
    ) -> list[Sequence[int]]:
        """Run one level; return edge checks and ``extras`` of each domain of this rank.

        The domains take each step in turn. A transfer begins when all of them have made
        theirs: on all ranks first that of normals, then that of masks.

        work: summed over all ranks, so that all agree when there is nothing to exchange
        counting: whether edge checks are counted; else the result is empty
        """
        timed, pulls = self._timed, bool(work.nn) and choice.get(OUTER) == "pull"
        if self._streamed is not None:
            with timed("advance"):
                return self._streamed.level(
                    pull=pulls,
                    reduces=self._hidden > 0,
                    counting=counting,
                    ahead=self._ahead,
                )
        exchange, searches = self.exchange, self._searches
        sends = bool(work.nn) and not pulls
        reduces = self._hidden > 0 and bool(work.dd_forward or work.nd_forward)
        with timed("advance"):
            steps: list[Any] = [search.advance(choice) for search in searches]
            bins = [next(step) for step in steps]
            if sends:
                exchange.start_normals(bins)
            masks = [next(step) for step in steps]
            if reduces:
                exchange.start_masks(masks)
            for step in steps:
                next(step, None)
        with timed("exchange"):
            mask = exchange.finish_masks() if reduces else None
            arrived = self._nothing
            if sends:
                arrived = self._last_round(exchange.finish_normals(), self._rest)
        if pulls:
            with timed("pull"):
                arrived = self._last_round(self._answered(), self._answered)
        with timed("accept"):
            for search, items in zip(searches, arrived, strict=True):
                search.accept(mask, items)
        return [search.checks() for search in searches] if counting else []

    def _last_round(self, arrived: Received, again: Callable[[], Received]) -> Received:
        """Exchange items for which boxes had no room; return those of the last round.

        arrived: items of the first round; again: exchanges those of a further one
        """
        while self._searches[0].in_rounds:
            more = np.array([max(search.more() for search in self._searches)])
            if not self._world.allreduce(more, "max")[0]:
                break
            for search, items in zip(self._searches, arrived, strict=True):
                search.take(items)
            arrived = again()
        return arrived

    def _rest(self) -> Received:
        """Send items that have not fitted; return those that each domain received."""
        self.exchange.start_normals([search.rest() for search in self._searches])
        return self.exchange.finish_normals()

    def _answered(self) -> Received:
        """Exchange questions and answers; return those that each domain received."""
        searches, exchange = self._searches, self.exchange
        with exchange.traffic.of("questions"):
            exchange.start_normals([search.questions() for search in searches])
            asked = exchange.finish_normals()
        answers = [s.answers(x) for s, x in zip(searches, asked, strict=True)]
        # mutant: answers -> questions : test_records_tell_kinds_and_domains
        with exchange.traffic.of("answers"):
            exchange.start_normals(answers)
            return exchange.finish_normals()


def untimed(_: str) -> AbstractContextManager[None]:
    """Return a context that does nothing."""
    return UNTIMED

"""Whole searches between domains in one launch, with the kernels run on the CPU."""

from contextlib import nullcontext

import numpy as np
import pytest
from device_parts import LARGE
from graphs import build, kronecker, some_roots
from masked_graphs import random_way, see_between
from part_graphs import GRAPHS, SMALL
from symmetric_threads import SymmetricThreads, ThreadMemory
from test_between_kernels import each_pair, streamed
from test_sets import some_sets
from test_split_between import WAYS, split  # noqa: F401 - a fixture

from distbfs.engines import streamed as streams
from distbfs.engines.cuda.xbfs import between_loop, between_params, shared
from distbfs.engines.cuda.xbfs.between_loop import BetweenLoop
from distbfs.engines.cuda.xbfs.memory import symmetric_bytes
from distbfs.errors import DistbfsError, LaunchError, OutOfMemory
from distbfs.exchange.traffic import KINDS
from distbfs.partition.layout import Placement
from distbfs.plan.memory import PartShape
from distbfs.types import SUBGRAPHS

OWN = "a launch is for ranks of one device each"


def looped(source, sizes, *, before=None, **options):
    """As ``streamed``; each search is one launch. Returns what rank 0 has sent.

    sizes: of the domains, or how many there are of one device
    before: called besides, as there
    """
    sent = []

    def prepare(runner, world):
        if before is not None:
            before(runner, world)
        assert (runner.mode, runner.why) == ("resident", "")
        runner._levels = None  # a search level by level fails
        if world.rank == 0:
            sent.append(runner.exchange.traffic)

    form = {"exchange": SymmetricThreads, "before": prepare}
    sizes = [1] * sizes if isinstance(sizes, int) else sizes
    streamed(source, sizes, **form, **options)
    return dict(zip(KINDS, sent[0].sent[:, 0].sum(axis=0).tolist(), strict=True))


@each_pair(
    "parts, threshold, direction, name",
    *((2, 3, 5), (0, 4, LARGE), ("auto", "push", "pull"), list(GRAPHS)),
)
def test_levels_and_parents(device, id_bits, parts, threshold, direction, name):
    source = GRAPHS[name]
    sent = looped(source, parts, threshold=threshold, direction=direction)
    if direction == "push":
        assert not sent["questions"]
        assert not sent["answers"]
    delegates = threshold != LARGE and (source.degrees > threshold).any()
    assert bool(sent["masks"]) <= delegates
    assert bool(sent["parents"]) <= delegates


@each_pair(
    "sizes, threshold, direction, name",
    *(((2, 2), (3, 3), (1, 2), (2, 3), (2, 1, 3)), (0, 4, LARGE)),
    *(("auto", "push", "pull"), list(GRAPHS)),
)
def test_domains_of_several_devices(device, id_bits, sizes, threshold, direction, name):
    looped(GRAPHS[name], sizes, threshold=threshold, direction=direction)


@pytest.mark.thorough
@pytest.mark.parametrize("wide", [0, 3, 50])
def test_boxes_are_on_their_way_while_the_inner_graph_is_searched(
    device, monkeypatch, wide
):
    monkeypatch.setattr(between_loop, "WIDE", wide)
    put = []

    def before(runner, world):
        put.append(runner._loop.params.wide)

    for name, threshold, parts, direction in (
        ("kronecker", 4, 3, "auto"),
        ("random", LARGE, 2, "push"),
        ("grid", 0, 3, "auto"),
        ("kronecker", 4, (2, 1, 2), "push"),
    ):
        source = SMALL[name]
        form = {"threshold": threshold, "direction": direction}
        sent = looped(source, parts, before=before, **form)
        assert set(put) == {wide}
        put.clear()
        with monkeypatch.context() as patch:
            patch.setattr(ThreadMemory, "near", True)
            late = looped(source, parts, before=before, **form)
        assert set(put) == {between_loop.NEVER}
        put.clear()
        for one in (sent, late):
            del one["masks"]  # a late block may tell what it has just heard
        assert late == sent


def test_turns_that_begin_anew_in_words_of_counts(device):
    """More turns than such a word can tell apart."""

    def before(runner, world):
        runner._loop.params.held["turn"][0] = (1 << 16) - 6

    looped(GRAPHS["kronecker"], 3, threshold=4, before=before)
    looped(GRAPHS["grid"], 2, threshold=LARGE, before=before)


def test_what_is_sent_is_counted(device):
    source = GRAPHS["kronecker"]
    pulled = looped(source, 3, threshold=LARGE, direction="pull")
    assert pulled["questions"]
    assert pulled["answers"]
    masks = looped(source, 3, threshold=4)
    assert masks["masks"]
    assert masks["parents"]


@pytest.mark.parametrize("sizes", [(1, 1), (1, 1, 1), (1,) * 5, (2, 2)])
@pytest.mark.parametrize("threshold", [0, 6, LARGE])
def test_the_plan_knows_the_symmetric_memory(device, monkeypatch, sizes, threshold):
    """As much as is allocated, but for boxes that are larger than the mean."""
    monkeypatch.setattr(streams, "FIRST", 4)
    monkeypatch.setattr(streams, "LEAST_FIRST", 4)
    source, parts, used = GRAPHS["kronecker"], sum(sizes), []
    made, _ = build(source, parts, threshold=threshold)
    planned = []
    for one in made:
        owned = int((one.layout.part_of(one.delegates) == one.index).sum())
        edges = {name: getattr(one, name).edges for name in SUBGRAPHS}
        counts = source.n, parts, len(one.delegates), one.local_count, one.active
        shape = PartShape(*counts, owned, edges, 0, domain=sizes[0])
        planned.append(symmetric_bytes(shape))

    allocate = ThreadMemory.allocate

    def noted(self, size, what):
        used.append(size)
        return allocate(self, size, what)

    monkeypatch.setattr(ThreadMemory, "allocate", noted)

    looped(source, sizes, threshold=threshold, count=1)
    assert len(set(used)) == 1
    # boxes to some parts are larger than those of a mean one
    assert 0.9 * used[0] <= max(planned) <= used[0]


def test_many_shares(device):
    looped(kronecker(8), 17, threshold=6, count=1)


@pytest.mark.parametrize("sizes", [(1, 1), (2, 2), (1, 2)])
def test_masks_of_several_pieces(device, sizes):
    """Those that have nothing new in a level are not sent: leaves find one vertex."""
    source = kronecker(14, edge_factor=4)
    lanes = np.lcm.reduce(sizes)
    assert (source.degrees > 0).sum() > 32 * lanes * between_params.THREADS
    leaves = np.flatnonzero(source.degrees == 1)[:3].tolist()
    looped(source, sizes, threshold=0, roots=leaves)


@pytest.mark.full_blocks(id_bits=32, sizes=(1, 1))
@each_pair("sizes", [(1, 1), (2, 1)])
def test_sets_of_roots(device, id_bits, sizes):
    for name, threshold in (("kronecker", 4), ("random", LARGE)):
        roots = [*some_sets(GRAPHS[name]), 0]
        looped(GRAPHS[name], sizes, threshold=threshold, roots=roots)


@each_pair("sizes, direction", [(1, 1, 1), (2, 1)], ["auto", "pull"])
def test_some_edges(device, id_bits, sizes, direction):
    for seed, threshold in enumerate((4, LARGE)):
        source = kronecker(8) if seed else GRAPHS["hub"]
        make, left = random_way(source, 2 * seed + 1)

        def before(runner, world, make=make, left=left):
            see_between(runner, make, left, world)

        form = {"threshold": threshold, "direction": direction}
        looped(source, sizes, before=before, left=left, **form)


@pytest.mark.parametrize("sizes", [(1, 1), (2, 1)])
def test_rows_with_tails_in_host_memory(device, split, sizes):  # noqa: F811
    for threshold in (12, LARGE):
        looped(kronecker(9), sizes, threshold=threshold, room=split)


@pytest.mark.thorough
@pytest.mark.parametrize("sizes", [(1, 1), (2, 2), (1, 3)])
def test_few_columns_and_marks(device, sizes):
    """Levels by marking, and pulls at once."""
    for way in WAYS:
        looped(GRAPHS["kronecker"], sizes, threshold=5, overrides=way)


@pytest.mark.parametrize(
    "options", [{"records": True}, {"aims": [(1, None), (None, np.array([3]))]}]
)
def test_what_is_counted_or_limited_goes_level_by_level(device, monkeypatch, options):
    monkeypatch.delattr(BetweenLoop, "run")
    streamed(
        GRAPHS["kronecker"],
        [1, 1],
        exchange=SymmetricThreads,
        threshold=4,
        direction="push",
        **options,
    )


@pytest.mark.parametrize("sizes", [(1, 1), (2, 1)])
def test_searches_of_both_kinds_in_turn(device, sizes):
    source = GRAPHS["kronecker"]
    root = some_roots(source, 1)[0]
    wanted = source.distances(root).max() + 1

    def before(runner, world):
        for records in (False, True, False, True):
            assert runner.search(root, records=records).levels == wanted
        assert runner.search(root, parents=False).parent == [None]

    looped(source, sizes, threshold=4, before=before)


def test_searches_with_an_end_between_those_in_one_launch(device):
    """Devices are connected for levels when a search first needs them."""
    captured = []

    def before(runner, world):
        assert (runner.mode, runner.captures) == ("resident", False)
        captured.append(runner)

    source = GRAPHS["kronecker"]
    aims = ((None, None), (1, None), (None, None), (2, None))
    form = {"exchange": SymmetricThreads, "threshold": 4, "before": before}
    streamed(source, [1, 1], aims, **form)
    assert all(runner.captures for runner in captured)


@pytest.mark.parametrize("error", [OutOfMemory, LaunchError])
def test_levels_on_streams_where_a_launch_is_not_to_be_had(device, monkeypatch, error):
    def refuse(*_):
        raise error("boxes")

    monkeypatch.setattr(BetweenLoop, "__init__", refuse)

    def before(runner, world):
        assert (runner._loop, runner.mode) == (None, "stepwise")
        assert runner.why == "levels by NCCL: boxes"

    form = {"exchange": SymmetricThreads, "threshold": 4, "before": before}
    streamed(GRAPHS["kronecker"], [1, 1], **form)


def test_levels_by_the_host_if_asked_for(device):
    def before(runner, world):
        assert runner.why == "levels by NCCL: levels led by the host were requested"

    form = {"exchange": SymmetricThreads, "threshold": 4, "before": before}
    streamed(GRAPHS["kronecker"], [1, 1], stepwise=True, **form)


def test_ranks_of_several_devices_go_level_by_level(device):
    device.one_rank = True
    placement = Placement.of_domains([[0, 0], [1, 1]], 2)

    def before(runner, world):
        assert runner.why == f"levels by NCCL: {OWN}"

    form = {"exchange": SymmetricThreads, "threshold": 4, "before": before}
    streamed(GRAPHS["kronecker"], (), owners=placement, **form)


class Absent:
    """A launch that never begins."""

    def record(self, **_):
        return self

    def set_arguments(self):
        pass

    def launch(self):
        pass

    def wait(self):
        return 0.0


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("sizes", "lost", "parts"),
    [((1, 1), 1, {0: "1"}), ((2, 1), 1, {0: "2", 2: "[02]"})],
)
def test_a_share_that_is_waited_for_in_vain(device, monkeypatch, sizes, lost, parts):
    """By a share of its domain, or of another one.

    lost: the rank that does not come; parts: which the others name, by rank
    """
    monkeypatch.setattr(shared, "PATIENCE", 50_000_000)
    source = GRAPHS["kronecker"]
    roots = some_roots(source, 1)
    ended = []

    def before(runner, world):
        if world.rank == lost:
            monkeypatch.setattr(runner._loop, "_launch", lambda **_: Absent())
        part = parts.get(world.rank)
        wanted = f"^part {part} did not answer in time; this session cannot search any"
        fails = pytest.raises(DistbfsError, match=wanted)
        with nullcontext() if part is None else fails:
            runner.search(roots[0])
        ended.append(world.rank)
        raise Done

    form = {"exchange": SymmetricThreads, "threshold": 4, "before": before}
    with pytest.raises(Done):
        streamed(source, sizes, roots=roots, **form)
    assert ended


class Done(Exception):
    """Ends a test's ranks."""

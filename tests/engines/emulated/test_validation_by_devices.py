"""Validation by several devices, which are the CPU, against that on the host."""

import gc
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from covering import covered
from graphs import NAMED, Tuples, kronecker, random_tuples
from thread_peers import ThreadLink
from validation.test_cuda_on_host import ArrayTuples, holds, planted
from validation.test_validate import asked, search
from worlds import on_ranks

from distbfs.device import cuda
from distbfs.device.array_table import total_bytes
from distbfs.generate import cuda as device_tuples
from distbfs.ranks.world import SoloWorld
from distbfs.validation import between, cuda_device, derived_cuda
from distbfs.validation import cuda as module
from distbfs.validation import kept as kept_ends
from distbfs.validation.cuda import validate_on_devices
from distbfs.validation.cuda_device import CheckingDevice, ResultShard, ValidationSeat
from distbfs.validation.faults import Asked
from distbfs.validation.host import validate
from distbfs.validation.kept import KeptEnds

GRAPHS = {
    "random": random_tuples(300, 700, 3),
    "sparse": random_tuples(500, 300, 4),
    "kronecker": kronecker(8),
    "isolated": NAMED["isolated"],
}
SHAPES = [(2, 2), (3, 3), (4, 2), (3, 1), (1, 1), (16, 3)]  # parts, devices


def seats_of(tuples, level, parent, parts, devices, mine, kept=None):
    """The devices ``mine``, with the parts of each, dealt in turn."""
    cp = cuda.cupy()

    def on_device(values, part):
        return None if values is None else cp.asarray(values[part::parts].copy())

    return [
        ValidationSeat(
            tuples,
            [
                ResultShard(part, on_device(level, part), on_device(parent, part))
                for part in range(device, parts, devices)
            ],
            kept=kept and kept[device],
        )
        for device in mine
    ]


def told(
    source,
    root,
    level,
    parent,
    shape,
    *,
    world=None,
    mine=None,
    kept=None,
    directed=False,
    **options,
):
    """What devices say of a result; of those of this rank."""
    parts, devices = shape
    wide = device_tuples.id_type(source.n)
    tuples = ArrayTuples(source, cuda.cupy(), wide)
    if level is not None:
        level = level.astype(next(x for x in module.LEVEL_TYPES if holds(level, x)))
    types = module.PARENT_TYPES[wide is np.uint64 :]
    if parent is not None:
        parent = parent.astype(next(x for x in types if holds(parent, x)))
    mine = range(devices) if mine is None else mine
    seats = seats_of(tuples, level, parent, parts, devices, mine, kept)
    has = Asked(level is not None, parent is not None, directed)
    known = (source.n, parts, root, has)
    return validate_on_devices(world or SoloWorld(), seats, *known, **options)


def same(verdicts, source, root, level, parent, **form):
    """Compare what all ranks say, or one, with what the host says; return that."""
    whole = Tuples(source.n, source.u, source.v, size=max(source.tuples, 1))
    expected = validate(SoloWorld(), whole, root, level, parent, threads=1, **form)
    assert verdicts
    for verdict in verdicts if isinstance(verdicts, list) else [verdicts]:
        for name in ("errors", "valid", "nedge", "reached", "depth"):
            assert getattr(verdict, name) == getattr(expected, name), name
    return expected


def wrong_cases(source, root, wanted, turns, directed=False):
    """Yield whether it is right, and the arguments of ``same``, of some planted cases.

    wanted: "both", or what is validated alone; turns: numbers of faults, of which only
    those of ``wanted`` count
    """
    level, parent = search(source.n, source.u, source.v, root, directed)
    right, *faults = planted(source, root, level, parent, seed=5)
    known = {"both": (3, 4), "level": (3,), "parent": (4,)}[wanted]
    faults = [
        case
        for case in faults
        if case[1:3] != right[1:3]
        or not all(np.array_equal(case[k], right[k]) for k in known)
    ]
    for case in (right, *faults[turns]):
        yield (
            case is right,
            [x if k < 3 or k in known else None for k, x in enumerate(case)][1:],
        )


WHOLE, ASKED = "all parents", "states asked for"


@pytest.fixture(params=[WHOLE, ASKED])
def form(request, device, monkeypatch):
    """What of all vertices fits a device; no other way is taken then."""
    forms = set()

    def noted(check, form, *known, **options):
        if not (form.alone or form == derived_cuda.BITS):
            forms.add(ASKED if form.asked else WHOLE)
        return take(check, form, *known, **options)

    device.multiprocessors = 1  # 8 blocks, or 2
    # else pieces of tuples are eight times smaller where nothing fits
    monkeypatch.setattr(module, "DIVISORS", module.DIVISORS[:1])
    take = CheckingDevice.take
    monkeypatch.setattr(CheckingDevice, "take", noted)
    if request.param == ASKED:
        monkeypatch.setattr(cuda, "available", lambda _: 0)
    yield request.param
    assert forms <= {request.param}


WANTED = ("both", "level", "parent")


@pytest.mark.parametrize(
    ("form", "id_bits", "shape", "name", "wanted"),
    covered([WHOLE, ASKED], [32, 64], SHAPES, list(GRAPHS), WANTED),
    indirect=["form", "id_bits"],
)
def test_planted_faults(form, id_bits, shape, name, wanted):
    """A fifth of the faults with each shape."""
    source, chunk = GRAPHS[name], (4000, 600, 1000)[SHAPES.index(shape) % 3]
    if source.n < shape[0]:
        shape = (2, 2)
    turns = slice(SHAPES.index(shape) % 5, None, 5)
    for right, values in wrong_cases(source, int(source.u[0]), wanted, turns):
        assert same(told(*values, shape, chunk=chunk), *values).valid or not right


@pytest.mark.parametrize(
    ("form", "id_bits", "shape", "name", "wanted"),
    covered([WHOLE, ASKED], [32, 64], SHAPES, list(GRAPHS), WANTED),
    indirect=["form", "id_bits"],
)
def test_faults_of_directed_graphs(form, id_bits, shape, name, wanted):
    """A fifth of the faults with each shape; with arcs turned round another answer."""
    source, turns = GRAPHS[name], slice(SHAPES.index(shape) % 5, None, 5)
    if source.n < shape[0]:
        shape = (2, 2)
    cases = wrong_cases(source, int(source.u[0]), wanted, turns, directed=True)
    for right, values in cases:
        verdict = told(*values, shape, chunk=600, directed=True)
        expected = same(verdict, *values, directed=True)
        assert expected.valid or not right
        if right:
            turned = [Tuples(source.n, source.v, source.u), *values[1:]]
            verdict = told(*turned, shape, chunk=600, directed=True)
            same(verdict, *turned, directed=True)
            assert not verdict.valid or expected.reached == 1


def test_one_wrong_parent_or_level_of_another_device(form):
    """Some vertices, on whichever device they are."""
    source = kronecker(6)
    root = int(source.u[0])
    level, parent = search(source.n, source.u, source.v, root)
    for x in np.flatnonzero((level > 0) & (np.arange(source.n) != root))[::9].tolist():
        for which, value in ((level, level[x] + 1), (parent, root), (parent, x)):
            kept, which[x] = which[x], value
            same(told(source, root, level, parent, (3, 3)), source, root, level, parent)
            which[x] = kept


DEPTHS = [5, 6, 7, 13, 14, 15, 126, 127, 254, 255, 32800]


@pytest.mark.parametrize(
    ("form", "depth", "wanted"),
    [
        (form, depth, wanted)
        for form, depth in product([WHOLE, ASKED], DEPTHS)
        for wanted in ("both", "level", "parent")
        # levels come from parents one launch each, in four bytes from 127 on
        if wanted != "parent" or depth in (7, 14, 127)
    ],
    indirect=["form"],
)
def test_depths(form, depth, wanted):
    """A path, whose last edge is turned to a vertex that is much nearer."""
    path = np.arange(depth, dtype=np.int64)
    few = depth > 300 or (wanted == "parent" and depth > 100)
    others = (2, 16) if few else ((2, 8, 16), (7, 15))[(depth + len(form)) % 2]
    for step in (0, *others):
        u, v = np.append(path, 0), np.append(path + 1, 0)
        source = Tuples(depth + 1, u, v)
        level = np.arange(depth + 1, dtype=np.int32)
        parent = np.maximum(level - 1, 0).astype(np.int64)
        u[-2] = max(depth - 1 - step, 0)
        case = source, 0, *asked(level, parent, wanted)
        assert same(told(*case, (4, 2)), *case).valid == (step == 0)


def test_many_pairs(form):
    """Every tuple is a tree edge, and most are another device's."""
    n, chunk = 5000, 64  # more pairs than there is room for
    leaves = np.arange(1, n, dtype=np.int64)
    source = Tuples(n, 0 * leaves, leaves)
    level = np.minimum(np.arange(n), 1).astype(np.int32)
    case = source, 0, level, np.zeros(n, np.int64)
    assert same(told(*case, (4, 4), chunk=chunk), *case).valid
    case[3][1500] = 1400
    assert not same(told(*case, (4, 4), chunk=chunk), *case).valid


@pytest.mark.parametrize("devices", [1, 3])
@pytest.mark.parametrize("share", [1, 0.4, 0])
def test_kept_tuples(form, devices, share, monkeypatch):
    """They are made once, as far as they fit, and faults are found by them."""
    source = random_tuples(300, 5000, 3)
    root, shape = int(source.u[0]), (devices, devices)
    level, parent = search(source.n, source.u, source.v, root)
    made = []

    def counted(self, start, stop, u, v):
        made.append(stop - start)
        fill(self, start, stop, u, v)

    fill = ArrayTuples.fill
    monkeypatch.setattr(ArrayTuples, "fill", counted)
    free = int(share * 2 * 8 * (source.tuples // devices + 600))
    monkeypatch.setattr(kept_ends, "cuda", SimpleNamespace(available=lambda _: free))
    kept = [KeptEnds() for _ in range(devices)]
    for chunk in (600, 600, 1000):
        for x, value in ((0, root), (7, parent[7]), (120, root)):
            case = source, root, level, parent.copy()
            case[3][x] = value
            made.clear()
            same(told(*case, shape, kept=kept, chunk=chunk), *case)
        few, many = {1: (0, 0), 0.4: (1, 4999), 0: (5000, 5000)}[share]
        assert few <= sum(made) <= many
        assert all(ends.complete for ends in kept) == (share == 1)


@pytest.mark.parametrize("parts", [1, 3])
def test_memory(form, device, parts, monkeypatch):
    """What is allocated is what was counted, and goes with the validation.

    What comes from other devices is counted for full lists of pairs, one at a time.
    """
    source = kronecker(9)
    root = int(source.u[0])
    case = source, root, *search(source.n, source.u, source.v, root)
    need, before, while_at_work, arriving, copied, pairs = [], [], [], [], [], []

    def counted(check, layout, chunk, *shards):
        table = check.table(layout, chunk)
        need.append(total_bytes(table))
        arriving.append(table["came"].nbytes if "came" in table else 0)
        pairs.append(layout.asked and parts > 1)
        before.append(device.arrays.bytes)
        return take(check, layout, chunk, *shards)

    def measured(check, *known):
        while_at_work.append(device.arrays.bytes)
        return launch(check, *known)

    def copy(array):  # as if it were of another device
        came = array.copy()
        copied.append(came.nbytes)
        while_at_work.append(device.arrays.bytes)
        return came

    if parts > 1:
        monkeypatch.setattr(cuda_device, "brought_here", copy)
    take, launch = CheckingDevice.take, CheckingDevice.launch
    monkeypatch.setattr(CheckingDevice, "take", counted)
    monkeypatch.setattr(CheckingDevice, "launch", measured)
    gc.collect()
    gc.disable()
    try:
        none = device.arrays.bytes
        told(*case, (parts, parts), chunk=8000)
        assert device.arrays.bytes == none
    finally:
        gc.enable()
    taken = max(while_at_work) - min(before)
    assert 0.85 * (sum(need) - sum(arriving)) < taken < sum(need) + 1000 * parts
    if any(pairs):  # else devices have copies of all parents
        assert 0 < max(copied) <= max(arriving)


@pytest.mark.thorough
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("wanted", WANTED)
def test_ranks(form, ranks, wanted):
    """The last of three has no device; there are many chunks, and pairs in each."""
    source = random_tuples(400, 1500, 9)
    turns = slice(ranks, None, 5)
    for right, values in wrong_cases(source, int(source.u[0]), wanted, turns):

        def rank(world, values=values):
            mine = ([0, 2], [1], [])[world.rank]
            return told(*values, (6, 3), world=world, mine=mine, chunk=256)

        assert same(on_ranks(ranks, rank), *values).valid or not right


# parts, then devices of each rank, as the numbers of ``seats_of``
RANKS = [
    (6, [[0, 2], [1], []]),
    (4, [[0], [1]]),
    (3, [[0], [], [1]]),
    (7, [[0, 1, 2], [3]]),
    (5, [[4], [1], [0, 3, 2]]),
]


@pytest.fixture
def copied():
    """What validates on ranks whose devices copy from each other."""

    def run(parts, of_rank, case, *, times=1, **options):
        def rank(world):
            mine, counts = of_rank[world.rank], [len(x) for x in of_rank]
            link, shape = ThreadLink(world, [0] * len(mine)), (parts, sum(counts))
            known = {"world": world, "mine": mine, "link": link, **options}
            return [told(*case, shape, **known) for _ in range(times)]

        return [x for of_rank in on_ranks(len(of_rank), rank) for x in of_rank]

    return run


@pytest.mark.parametrize(
    ("form", "id_bits", "ranks", "wanted"),
    covered([WHOLE, ASKED], [32, 64], range(len(RANKS)), WANTED),
    indirect=["form", "id_bits"],
)
def test_ranks_that_copy(form, id_bits, ranks, wanted, copied):
    """With states and parents of all, and where these do not fit.

    Each device has several chunks of tuples.
    """
    parts, of_rank = RANKS[ranks]
    source = random_tuples(200, 800, 9)
    assert source.tuples // sum(map(len, of_rank)) > 128
    turns = slice(ranks, None, len(RANKS))
    for right, values in wrong_cases(source, int(source.u[0]), wanted, turns):
        verdicts = copied(parts, of_rank, values, chunk=128)
        assert same(verdicts, *values).valid or not right


@pytest.mark.thorough
@pytest.mark.parametrize("form", [WHOLE], indirect=True)
@pytest.mark.parametrize("which", ["level", "parent"])
def test_one_wrong_value_of_another_rank(form, which, copied):
    """Twice: a verdict leaves nothing behind."""
    source = kronecker(6)
    root = int(source.u[0])
    level, parent = search(source.n, source.u, source.v, root)
    reached = np.flatnonzero((level > 0) & (np.arange(source.n) != root))
    for x in reached[::4].tolist():
        case = source, root, level.copy(), parent.copy()
        if which == "level":
            case[2][x] += 1
        else:
            case[3][x] = root if parent[x] != root else x
        verdicts = copied(3, [[0], [1, 2]], case, times=2)
        assert not same(verdicts, *case).valid


@pytest.mark.parametrize("form", [WHOLE], indirect=True)
@pytest.mark.parametrize("words", [8, 40, 1 << 24])
def test_pieces_of_states(form, words, copied, monkeypatch):
    """Rows of states of several pieces, and of many devices in one."""
    monkeypatch.setattr(between, "SPREAD", words)
    source = random_tuples(700, 5000, 2)
    case = source, int(source.u[0]), *search(source.n, source.u, source.v, source.u[0])
    assert same(copied(5, [[0, 1], [2], [3]], case), *case).valid
    last = np.flatnonzero(case[2] == case[2].max())[-1]
    case[3][last] = np.flatnonzero(case[2] == case[2].max() - 1)[0]
    same(copied(5, [[0, 1], [2], [3]], case), *case)


@pytest.mark.parametrize("form", [WHOLE], indirect=True)
def test_parents_of_several_types(form, monkeypatch, copied):
    """Ranks agree on the bytes of a parent that they copy."""
    source = random_tuples(300, 900, 6)
    root = int(source.u[0])
    level, parent = search(source.n, source.u, source.v, root)

    def widened(tuples, level, parent, parts, devices, mine, kept=None):
        wide = parent.astype(np.int64) if 1 in mine else parent
        return as_they_are(tuples, level, wide, parts, devices, mine, kept)

    as_they_are = seats_of
    monkeypatch.setitem(globals(), "seats_of", widened)
    for x in (0, 5, 77):
        case = source, root, level, parent.copy()
        case[3][x] = parent[x] if x == 0 else root
        same(copied(2, [[0], [1]], case), *case)


@pytest.mark.parametrize("form", [WHOLE], indirect=True)
@pytest.mark.parametrize("tuples", [500, 9000])
def test_collectives(form, tuples, copied, monkeypatch):
    """Their number does not depend on that of the tuples or vertices."""
    copies, calls = [], []

    def counted(link, some):
        copies.append(link)
        link._world.calls -= 1
        copy(link, some)

    source = random_tuples(600, tuples, 2)
    case = source, int(source.u[0]), *search(source.n, source.u, source.v, source.u[0])

    def measured(world, seats, *known, **options):
        before = world.calls
        verdict = validate(world, seats, *known, **options)
        calls.append(world.calls - before)
        return verdict

    copy, validate = ThreadLink.copy, validate_on_devices
    monkeypatch.setattr(ThreadLink, "copy", counted)
    monkeypatch.setitem(globals(), "validate_on_devices", measured)
    assert all(x.valid for x in copied(2, [[0], [1]], case, chunk=256))
    assert calls == [5, 5]
    assert len(copies) == 2 * 3

import ast
from collections import deque
from pathlib import Path

import numpy as np
import pytest
from graphs import Tuples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from worlds import on_ranks

from distbfs.errors import UsageError
from distbfs.ranks.world import SoloWorld
from distbfs.types import slice_bounds
from distbfs.validation import host as module
from distbfs.validation import tuple_checks
from distbfs.validation.block_values import Lookup
from distbfs.validation.faults import KINDS, NEDGE, Tally
from distbfs.validation.host import validate

FAST = settings(max_examples=50, deadline=None)
FEW = settings(max_examples=40, deadline=None)


def search(n, u, v, root, directed=False):
    """Breadth-first search with a queue from one root or several; levels, parents."""
    neighbours = [[] for _ in range(n)]
    for a, b in zip(u, v, strict=True):
        neighbours[a].append(b)
        if not directed:
            neighbours[b].append(a)
    level, parent = [-1] * n, [-1] * n
    queue = deque(np.atleast_1d(root).tolist())
    for x in queue:
        level[x], parent[x] = 0, x
    while queue:
        x = queue.popleft()
        for y in neighbours[x]:
            if level[y] < 0:
                level[y], parent[y] = level[x] + 1, x
                queue.append(y)
    return np.array(level, np.int32), np.array(parent, np.int64)


def is_search(n, u, v, root, level, parent, directed=False):
    """Whether a result is right, by distances and by looking at each tree edge."""
    distance, _ = search(n, u, v, root, directed)
    level = distance if level is None else level
    if not np.array_equal(distance, level):
        return False
    if parent is None:
        return True
    edges = set(zip(v, u, strict=True))
    if not directed:
        edges |= set(zip(u, v, strict=True))
    for x in range(n):
        p = int(parent[x])
        if level[x] < 0 or x in np.atleast_1d(root):
            good = p == (x if x in np.atleast_1d(root) else -1)
        else:
            good = 0 <= p < n and (x, p) in edges and level[p] == level[x] - 1
        if not good:
            return False
    return True


def count_edges(u, v, level, directed):
    pairs = zip(u, v, strict=True)
    return sum(level[a] >= 0 or (not directed and level[b] >= 0) for a, b in pairs)


def run(size, source, root, level, parent, **options):
    """Validate on ranks; the answer must be the same on all."""

    def work(world):
        low, high = slice_bounds(source.n, world.size, world.rank)
        blocks = (None if x is None else x[low:high] for x in (level, parent))
        return validate(world, source, root, *blocks, **options)

    results = on_ranks(size, work)
    assert all(x == results[0] for x in results)
    return results[0]


def answers(source, root, level, parent, directed=False):
    """Return the one answer that every way to validate gives."""
    few, known = 2 + source.tuples // 50, (source, root, level, parent)
    options = [
        (1, {"chunk": few + 1, "threads": 2}),
        (1, {}),
        (1, {"limit": 0, "chunk": few}),
        (3, {"chunk": few + 2, "threads": 1}),
        (3, {"limit": 0, "chunk": few + 1}),
    ]
    ways = [run(size, *known, directed=directed, **some) for size, some in options]
    if parent is not None and parent.min() >= -(2**31) and parent.max() < 2**31:
        narrow = (*known[:3], parent.astype(np.int32))
        ways.append(run(1, *narrow, directed=directed))
    tuples = [(w.valid, w.errors, w.nedge, w.reached, w.depth) for w in ways]
    assert all(x == tuples[0] for x in tuples), tuples
    return ways[0]


@st.composite
def graphs(draw, smallest=1, largest=9):
    n = draw(st.integers(smallest, largest))
    ids = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(ids, ids), max_size=18))
    several = st.sets(ids, min_size=2).map(lambda x: np.array([*x]))
    root = draw(st.one_of(ids, several) if n > 1 else ids)
    return n, [a for a, _ in edges], [b for _, b in edges], root


def asked(level, parent, wanted):
    """What a search gives that was requested both, or for one of them."""
    return level if wanted != "parent" else None, parent if wanted != "level" else None


WANTED = st.sampled_from(["both", "level", "parent"])


@FAST
@given(graphs(), WANTED, st.booleans())
@example((1, [], [], 0), "both", False)
@example((1, [0, 0], [0, 0], 0), "level", False)
@example((1, [0, 0], [0, 0], 0), "parent", True)
@example((5, [], [], 3), "both", False)
@example((3, [0, 2], [1, 1], 0), "both", True)
@example((3, [0, 2], [1, 1], 0), "both", False)
@example((4, [0, 0, 1, 1], [1, 1, 0, 1], 0), "both", False)
@example((4, [0, 1], [1, 2], np.array([2, 0, 3, 1])), "both", True)
@example((4, [0, 1], [1, 2], np.array([2, 0, 3, 1])), "parent", False)
def test_accepts_a_search(graph, wanted, directed):
    n, u, v, root = graph
    level, parent = search(n, u, v, root, directed)
    source = Tuples(n, u, v)
    verdict = answers(source, root, *asked(level, parent, wanted), directed)
    assert verdict.valid
    assert verdict.errors == []
    assert verdict.nedge == count_edges(u, v, level, directed)
    assert verdict.reached == np.count_nonzero(level >= 0)
    assert verdict.depth == level.max()
    assert verdict.seconds > 0


@st.composite
def mutations(draw):
    """A graph, its search, and one or more faults in the result."""
    n, u, v, root = draw(graphs(smallest=2))
    directed = draw(st.booleans())
    level, parent = search(n, u, v, root, directed)
    ids = st.integers(0, n - 1)
    odd = st.sampled_from([-(2**31), -2, -1, 0, n - 1, n, 2**31 - 1])
    for _ in range(draw(st.integers(1, 3))):
        x = draw(ids)
        kind = draw(st.sampled_from(["level", "parent", "swap", "lose", "gain"]))
        if kind == "level":
            level[x] = draw(st.one_of(st.integers(-2, n), odd))
        elif kind == "parent":
            huge = st.sampled_from([-(2**63), 2**63 - 1, 2**32 + x, -(2**32) + x])
            parent[x] = draw(st.one_of(ids, odd, huge))
        elif kind == "swap":
            y = draw(ids)
            parent[x], parent[y] = parent[y], parent[x]
        elif kind == "lose":
            level[x] = parent[x] = -1
        else:
            level[x], parent[x] = draw(st.integers(0, n - 1)), draw(ids)
    return n, u, v, root, level, parent, draw(WANTED), directed


@settings(max_examples=120, deadline=None)
@given(mutations())
def test_rejects_exactly_what_is_no_search(case):
    n, u, v, root, *known, directed = case
    level, parent = asked(*known)
    verdict = answers(Tuples(n, u, v), root, level, parent, directed)
    right = is_search(n, u, v, root, level, parent, directed)
    assert verdict.valid == right
    assert bool(verdict.errors) != right


@pytest.mark.parametrize("directed", [False, True])
def test_every_single_fault_is_found(directed):
    """On one graph, every change of one level or one parent."""
    u, v = [0, 1, 2, 3, 4, 5, 0, 2, 7, 2], [1, 2, 3, 4, 5, 0, 3, 2, 8, 3]
    n, root, form = 9, 0, {"directed": directed}
    level, parent = search(n, u, v, root, directed)
    source = Tuples(n, u, v)
    for x in range(n):
        for value in range(-2, n + 1):
            wrong = level.copy()
            wrong[x] = value
            for kept in (parent, None):
                right = is_search(n, u, v, root, wrong, kept, directed)
                assert run(1, source, root, wrong, kept, **form).valid == right
            wrong_parent = parent.copy()
            wrong_parent[x] = value
            right = is_search(n, u, v, root, level, wrong_parent, directed)
            assert run(1, source, root, level, wrong_parent, **form).valid == right


CHAIN = ([0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 5, 2])
LACKING = "rule 2: 1 vertices have no edge from a vertex one level nearer to the root"


@pytest.mark.parametrize("arc", range(6))
def test_one_arc_turned_round(arc):
    """A search of a directed graph is none of the same with one arc turned."""
    u, v = (np.array(ends) for ends in CHAIN)
    level, parent = search(6, u, v, 0, directed=True)
    assert answers(Tuples(6, u, v), 0, level, parent, directed=True).valid
    u[arc], v[arc] = v[arc], u[arc]
    right = is_search(6, u, v, 0, level, parent, directed=True)
    source = Tuples(6, u, v)
    verdict = answers(source, 0, level, parent, directed=True)
    assert verdict.valid == right == (arc == 1), "1 -> 2 is not a tree edge"
    child, of = u[arc], v[arc]
    message = "rule 5: 1 tree edges are not among the tuples, e.g. vertex"
    assert verdict.errors == [f"{message} {child} with parent {of}"][right:]
    lacking = answers(source, 0, level, None, directed=True).errors
    assert [error.startswith(LACKING) for error in lacking] == [True][right:]
    assert answers(source, 0, None, parent, directed=True).valid == right
    assert answers(source, 0, level, parent).valid, "of a symmetric graph nothing is"


@pytest.mark.parametrize(
    ("tuples", "level", "message"),
    [
        (
            ([0, 1, 0], [1, 2, 2]),
            [0, 1, 2],
            "rule 3: 1 tuples skip a level, e.g. (0, 2) from level 0 to level 2",
        ),
        (
            ([0, 1], [1, 2]),
            [0, 1, -1],
            """rules 3 and 4: 1 tuples lead from a reached to an unreached vertex, e.g.
            (1, 2) from level 1 to level -1""",
        ),
        (
            ([0, 2], [1, 1]),
            [0, 1, 2],
            """rule 2: 1 vertices have no edge from a vertex one level nearer to the
            root, e.g. vertex 2 at level 2""",
        ),
    ],
)
def test_rules_of_arcs(tuples, level, message):
    """Each alone is broken; with the arcs turned round another is."""
    message = " ".join(message.split())
    level = np.array(level, np.int32)
    verdict = answers(Tuples(3, *tuples), 0, level, None, directed=True)
    assert verdict.errors == [message]
    turned = Tuples(3, *tuples[::-1])
    errors = answers(turned, 0, level, None, directed=True).errors
    assert message not in errors


def test_arcs_that_come_back_or_from_elsewhere_break_no_rule():
    """Any number of levels up, and from vertices that are not reached."""
    source = Tuples(5, [0, 1, 2, 3, 3, 4], [1, 2, 3, 0, 1, 2])
    level, parent = search(5, source.u, source.v, 0, directed=True)
    assert level.tolist() == [0, 1, 2, 3, -1]
    verdict = answers(source, 0, level, parent, directed=True)
    assert (verdict.valid, verdict.nedge, verdict.reached) == (True, 5, 4)
    assert len(answers(source, 0, level, parent).errors) == 2


PATH = Tuples(6, [0, 1, 2, 4], [1, 2, 3, 5])
PATH_LEVEL = np.array([0, 1, 2, 3, -1, -1], np.int32)
PATH_PARENT = np.array([0, 0, 1, 2, -1, -1])

# What is changed, of which vertex, to what, and the message that tells of it.
FAULTS = [
    ("level", 3, 9, "levels: 1 are outside -1 … n-1, e.g. 9 of vertex 3"),
    ("parent", 3, -7, "parents: 1 are outside -1 … n-1, e.g. -7 of vertex 3"),
    (
        *("level", 3, 0),
        """rule 1: the root 0 alone must be at level 0; 1 vertices are not so,
        e.g. vertex 3 at level 0""",
    ),
    (
        *("parent", 2, 2),
        """rule 1: the root 0 alone must be its own parent; 1 vertices are not so,
        e.g. vertex 2 with parent 2""",
    ),
    (
        *("parent", 3, 1),
        """rule 2: 1 tree edges do not join levels that differ by one,
        e.g. vertex 3 at level 3 with parent 1 at level 1""",
    ),
    (
        *("level", 3, 5),
        """rule 3: 1 tuples join levels that differ by more than one,
        e.g. (2, 3) at levels 2 and 5""",
    ),
    (
        *("level", 4, 2),
        """rules 3 and 4: 1 tuples join a reached and an unreached vertex,
        e.g. (4, 5) at levels 2 and -1""",
    ),
    (
        *("level", 4, 2),
        """rule 4: 1 vertices have a level and no parent or a parent and no level,
        e.g. vertex 4 at level 2 with parent -1""",
    ),
    (
        *("parent", 5, 0),
        "rule 5: 1 tree edges are not among the tuples, e.g. vertex 5 with parent 0",
    ),
]


@pytest.mark.parametrize(("what", "vertex", "value", "message"), FAULTS)
def test_messages_name_rule_count_and_example(what, vertex, value, message):
    level, parent = PATH_LEVEL.copy(), PATH_PARENT.copy()
    if "rule 5" in message:  # two apart from the path whose levels are right
        level[4:], parent[4:] = (0, 1), 4
    (level if what == "level" else parent)[vertex] = value
    verdict = answers(PATH, 0, level, parent)
    assert " ".join(message.split()) in verdict.errors


def test_roots_of_a_set_are_named_and_checked():
    level, parent = np.array([0, 0, 1, 2, 0, 1]), np.array([0, 1, 1, 2, 4, 4])
    level = level.astype(np.int32)
    assert answers(PATH, np.array([4, 0, 1]), level, parent).valid
    for roots, wrong, message in (
        ([0, 4], 1, "the 2 roots from 0 to 4 alone must be at level 0; 1 vertices"),
        ([0, 4], 1, "alone must be their own parents; 1 vertices are not so, e.g. ver"),
        ([0, 1, 3, 4], 3, "the 4 roots from 0 to 4 alone must be at level 0"),
    ):
        verdict = answers(PATH, np.array(roots), level, parent)
        assert any(message in x and f"vertex {wrong} " in x for x in verdict.errors)
    for roots, message in (
        ([0, 6], "root is 6; allowed: 0 to 5"),
        ([1, 1], "root 1 occurs twice"),
        ([], "not one or several integers"),
        ([0.5, 1], "not one or several integers"),
    ):
        with pytest.raises(UsageError, match=message):
            validate(SoloWorld(), PATH, np.array(roots), level, parent)


def test_levels_only_finds_a_level_without_support():
    level = PATH_LEVEL.copy()
    level[4:] = (2, 3)
    verdict = answers(PATH, 0, level, None)
    assert verdict.errors == [
        (
            "rule 2: 1 vertices have no neighbour one level nearer to the root, e.g. "
            "vertex 4 at level 2"
        )
    ]


# what parents are changed, of which vertices, to what; all messages that tell of it
ROOTLESS = "rule 1: {} vertices have parents that lead to no root"
HALF = "rules 3 and 4: 1 tuples join a reached and an unreached vertex, e.g. "
LEVEL_0 = "rule 1: the root 0 alone must be at level 0"
OWN = "rule 1: the root 0 alone must be its own parent"
FAULTS_OF_PARENTS = {
    "wrong parent": (
        {3: 1},
        ["rule 5: 1 tree edges are not among the tuples, e.g. vertex 3 with parent 1"],
    ),
    "cycle": (
        {4: 5, 5: 4},
        [f"{ROOTLESS.format(2)}, e.g. vertex 4 with parent 5"],
    ),
    "cycle of three": (
        {1: 3, 2: 1, 3: 2},
        [
            f"{HALF}(0, 1) at levels 0 and -1",
            f"{ROOTLESS.format(3)}, e.g. vertex 1 with parent 3",
        ],
    ),
    "parent that is not reached": (
        {4: 5},
        [f"{ROOTLESS.format(1)}, e.g. vertex 4 with parent 5"],
    ),
    "below one that is not reached": (
        {2: 5},
        [
            f"{HALF}(1, 2) at levels 1 and -1",
            f"{ROOTLESS.format(2)}, e.g. vertex 2 with parent 5",
        ],
    ),
    "another root": (
        {4: 4, 5: 4},
        [
            f"{LEVEL_0}; 1 vertices are not so, e.g. vertex 4 at level 0",
            f"{OWN}; 1 vertices are not so, e.g. vertex 4 with parent 4",
        ],
    ),
    "not the root": (
        {0: 1, 1: 1},
        [
            f"{LEVEL_0}; 2 vertices are not so, e.g. vertex 0 at level 1",
            f"{OWN}; 2 vertices are not so, e.g. vertex 0 with parent 1",
        ],
    ),
    "lost": (
        {3: -1},
        [f"{HALF}(2, 3) at levels 2 and -1"],
    ),
    "outside": (
        {3: 6},
        [
            "parents: 1 are outside -1 … n-1, e.g. 6 of vertex 3",
            f"{HALF}(2, 3) at levels 2 and -1",
            f"{ROOTLESS.format(1)}, e.g. vertex 3 with parent 6",
        ],
    ),
}


@pytest.mark.parametrize("name", FAULTS_OF_PARENTS)
def test_faults_of_parents_alone(name):
    changes, messages = FAULTS_OF_PARENTS[name]
    parent = PATH_PARENT.copy()
    parent[[*changes]] = [*changes.values()]
    verdict = answers(PATH, 0, None, parent)
    assert verdict.errors == messages


@pytest.mark.parametrize("n", [1, 3, 255, 256, 257])
def test_levels_of_long_chains_of_parents(n):
    """A path is right; its last vertex may be told to begin a cycle with any other."""
    path = np.arange(n, dtype=np.int64)
    source = Tuples(n, path[:-1], path[1:], size=64)
    parent = np.maximum(path - 1, 0)
    verdict = answers(source, 0, None, parent)
    assert (verdict.valid, verdict.depth, verdict.reached) == (True, n - 1, n)
    for length in (2, 5, n - 1):
        if 1 < length < n:
            first = n - length
            parent[first] = n - 1
            verdict = answers(source, 0, None, parent)
            count = ROOTLESS.format(length)
            assert (
                verdict.errors[-1]
                == f"{count}, e.g. vertex {first} with parent {n - 1}"
            )
            parent[first] = first - 1


@pytest.mark.parametrize("far", [(0, 2), (2, 0)])
def test_a_tuple_that_spans_two_levels_is_found(far):
    """A path beside an edge, with the levels of the path: no other rule is broken."""
    source = Tuples(3, [0, 1, far[0]], [1, 2, far[1]])
    level, parent = np.array([0, 1, 2], np.int32), np.array([0, 0, 1])
    for parents in (parent, None):
        verdict = answers(source, 0, level, parents)
        assert len(verdict.errors) == 1
        assert "rule 3" in verdict.errors[0]


def test_cycle_apart_from_the_root_is_found():
    """Two vertices that are each other's parents, with levels that fit no step."""
    source = Tuples(5, [0, 2, 3, 4], [1, 3, 4, 2])
    level = np.array([0, 1, 1, 2, 2], np.int32)
    parent = np.array([0, 0, 3, 2, 2])
    verdict = answers(source, 0, level, parent)
    assert not verdict.valid
    assert verdict.errors[0].startswith("rule 2: 1 tree edges")


def test_tuples_outside_the_graph_are_told():
    source = Tuples(3, [0, 1, -1, 7], [1, 2, 0, 0])
    level, parent = search(3, [0, 1], [1, 2], 0)
    verdict = answers(source, 0, level, parent)
    assert verdict.errors == [
        "input: 2 tuples have an end outside the graph, e.g. (-1, 0)"
    ]


def test_wrong_root_and_blocks_are_refused_on_all_ranks():
    level, parent = PATH_LEVEL, PATH_PARENT
    for root in (-1, 6):
        with pytest.raises(UsageError, match="allowed: 0 to 5"):
            run(2, PATH, root, level, parent)

    def uneven(world):
        low, high = slice_bounds(6, world.size, world.rank)
        short = high - (world.rank == 1)
        return validate(world, PATH, 0, level[low:short], parent[low:short])

    with pytest.raises(UsageError, match="rank 1"):
        on_ranks(3, uneven)
    with pytest.raises(UsageError, match="rank 0"):
        run(2, PATH, 0, level.astype(np.int64), parent)
    with pytest.raises(UsageError, match="rank 0"):
        run(2, PATH, 0, level, parent.astype(np.float64))

    def some(world):
        low, high = slice_bounds(6, world.size, world.rank)
        given_parent = None if world.rank else parent[low:high]
        return validate(world, PATH, 0, level[low:high], given_parent)

    with pytest.raises(UsageError, match="rank 1 has no parents"):
        on_ranks(2, some)

    def others(world):
        low, high = slice_bounds(6, world.size, world.rank)
        given_level = None if world.rank else level[low:high]
        return validate(world, PATH, 0, given_level, parent[low:high])

    with pytest.raises(UsageError, match="rank 1 has no levels"):
        on_ranks(2, others)
    with pytest.raises(UsageError, match="rank 0"):
        run(2, PATH, 0, None, None)


@FEW
@given(mutations(), st.integers(1, 5), st.booleans())
def test_compiled_scan_equals_numpy(case, seed, outside):
    """It counts and marks alike where no tuple is wrong, and else says that one is."""
    n, u, v, root, *_, wanted, directed = case
    level, parent = search(n, u, v, root, directed)
    rng = np.random.default_rng(seed)
    kept = [*zip(u, v, strict=True), (0, 0)]
    extra = rng.integers(-2 * outside, n + 2 * outside, (2, 700))
    if not outside:
        extra = np.array(kept).T[:, rng.integers(len(kept), size=700)]
    u = np.concatenate((np.array(u, np.int64), extra[0]))
    v = np.concatenate((np.array(v, np.int64), extra[1]))

    def both(world):
        some = parent if wanted != "level" else None
        tables = [Lookup(world, n, level, some, 0) for _ in range(2)]
        tallies = [Tally(), Tally()]
        if tuple_checks.cc.load_or_none(tuple_checks.SOURCE) is None:
            pytest.skip("no C compiler")
        clean = tuple_checks.scan_compiled(
            tables[0], tallies[0], u, v, directed=directed, threads=2
        )
        tuple_checks.scan(tables[1], tallies[1], u, v, 0, directed=directed)
        assert clean != tallies[1].report[: len(KINDS)].any()
        assert clean or outside
        if clean:
            assert tallies[0].report[NEDGE] == tallies[1].report[NEDGE]
            one, other = (table.seen[level > 0] for table in tables)  # not by loops
            assert np.array_equal(one, other)
        else:
            assert tallies[0].report[NEDGE] == 0

    on_ranks(1, both)


def test_right_results_need_the_compiled_scan_alone(monkeypatch):
    if tuple_checks.cc.load_or_none(tuple_checks.SOURCE) is None:
        pytest.skip("no C compiler")
    monkeypatch.setattr(tuple_checks, "scan", None)
    assert run(2, PATH, 0, PATH_LEVEL, PATH_PARENT).valid
    with pytest.raises(TypeError):
        run(2, PATH, 0, 2 * PATH_LEVEL, PATH_PARENT)


def test_without_a_compiler_the_answer_is_the_same(monkeypatch):
    level, parent = PATH_LEVEL.copy(), PATH_PARENT.copy()
    level[3] = 5
    compiled = run(2, PATH, 0, level, parent)
    monkeypatch.setattr(tuple_checks.cc, "load_or_none", lambda source: None)
    assert run(2, PATH, 0, level, parent).errors == compiled.errors


def test_validator_knows_nothing_of_what_it_checks():
    """But the router, which brings items to ranks by number alone."""
    allowed = {"errors", "types", "distinct", "device", "generate", "validation"}
    folder = Path(module.__file__).parent
    for name in ("host", "block_values", "tuple_checks", "faults"):
        tree = ast.parse((folder / f"{name}.py").read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("distbfs."):
                router = node.module == "distbfs.exchange.router"
                assert router or node.module.split(".")[1] in allowed

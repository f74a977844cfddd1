"""The direction policy: formulas of the paper, hysteresis, and the edges of both."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distbfs.engines.base import CHOSEN, OUTER, Work
from distbfs.errors import UsageError
from distbfs.options import Factors, SearchOptions
from distbfs.search.direction import (
    DirectionPolicy,
    backward_work,
    decide,
)

COUNT = st.integers(0, 1 << 50)


def policy_of(options):
    """Return the policy of the subgraphs whose directions the paper chooses."""
    return DirectionPolicy(CHOSEN, options, delegates=True)


def work(**kinds):
    """Work with (forward, q, s, u) of some subgraphs."""
    of = ("forward", "q", "s", "u")
    return Work(
        **{
            f"{name}_{what}": count
            for name, counts in kinds.items()
            for what, count in zip(of, counts, strict=True)
        }
    )


@given(st.integers(1, 1 << 40), COUNT, COUNT)
def test_backward_work_is_the_formula(q, s, u):
    a = q / (q + s)  # probability that a potential parent is newly visited
    assert backward_work(q, s, u) == pytest.approx(u / a)


def test_backward_work_at_the_edges():
    assert backward_work(0, 5, 7) == math.inf
    assert backward_work(0, 0, 0) == math.inf
    assert backward_work(3, 5, 0) == 0
    assert backward_work(3, 0, 7) == 7


@pytest.mark.parametrize(
    ("present", "forward", "backward", "wanted"),
    [
        ("push", 51, 100, "pull"),
        ("push", 50, 100, "push"),
        ("push", 0, 0, "push"),
        ("push", 1, 0, "pull"),
        ("push", 10**9, math.inf, "push"),
        ("pull", 9, 100, "push"),
        ("pull", 10, 100, "pull"),
        ("pull", 0, 0, "pull"),
        ("pull", 0, math.inf, "push"),
    ],
)
def test_decide(present, forward, backward, wanted):
    assert decide(present, forward, backward, Factors(0.5, 0.1)) == wanted


@given(COUNT, COUNT, COUNT, COUNT)
def test_no_flapping(forward, q, s, u):
    """With to_push <= to_pull what was chosen stays chosen on the same counts."""
    backward = backward_work(q, s, u)
    factors = Factors(0.5, 0.1)
    for present in ("push", "pull"):
        chosen = decide(present, forward, backward, factors)
        assert decide(chosen, forward, backward, factors) == chosen


def test_between_the_factors_nothing_changes():
    for forward in range(11, 50):
        for present in ("push", "pull"):
            assert decide(present, forward, 100, Factors(0.5, 0.1)) == present


def test_factors_of_zero_never_turn_back():
    factors = Factors(0, 0)
    assert decide("push", 1, 100, factors) == "pull"
    assert decide("pull", 0, 100, factors) == "pull"
    assert decide("pull", 0, math.inf, factors) == "pull"


@pytest.mark.parametrize("name", CHOSEN)
def test_each_subgraph_decides_by_itself(name):
    policy = policy_of(SearchOptions())
    policy.start()
    heavy = work(**{name: (10**6, 10, 10, 10)})
    wanted = {k: "pull" if k == name else "push" for k in CHOSEN}
    assert policy.choose(heavy) == wanted
    # a level without such edges in the frontier: q = 0, back to push
    assert policy.choose(work())[name] == "push"


def test_factors_belong_to_their_subgraph():
    options = SearchOptions.named(
        dd=Factors(2, 0), dn=Factors(0.5, 0), nd=Factors(1.1, 0)
    )
    policy = policy_of(options)
    policy.start()
    same = (100, 10, 0, 100)  # forward work equals backward work
    choice = policy.choose(work(dd=same, dn=same, nd=same))
    assert choice == {"dd": "push", "dn": "pull", "nd": "push"}


@pytest.mark.parametrize("forced", ["push", "pull"])
def test_a_forced_direction_stays(forced):
    policy = policy_of(SearchOptions(direction=forced))
    policy.start()
    for counts in [(0, 0, 0, 0), (10**9, 1, 1, 1), (1, 10**9, 1, 10**9)]:
        choice = policy.choose(work(dd=counts, dn=counts, nd=counts))
        assert choice == dict.fromkeys(CHOSEN, forced)


def test_every_search_begins_with_push():
    policy = policy_of(SearchOptions.named(dd=Factors(0, 0)))
    policy.start()
    heavy = work(dd=(10, 1, 1, 1))
    assert policy.choose(heavy)["dd"] == "pull"
    policy.start()
    assert policy.choose(work())["dd"] == "push"


@pytest.mark.parametrize("values", [(-1, 0), (0, -1e-9), (math.nan, 0)])
def test_factors_that_are_refused(values):
    with pytest.raises(UsageError, match="allowed: 0 or more"):
        Factors(*values)


def test_few_unvisited_vertices_ask():
    """Outer edges of many are pushed by few, and pulled where few are left."""

    def chosen(front, left, delegates=False, **options):
        options = SearchOptions.named(**options)
        policy = DirectionPolicy((OUTER,), options, delegates=delegates)
        policy.start()
        return policy.choose(Work(nn=front, open=left))

    assert chosen(10, 1000) == {OUTER: "push"}
    assert chosen(1000, 10) == {OUTER: "pull"}
    assert chosen(100, 1000) == {OUTER: "push"}
    assert chosen(100, 1000, delegates=True) == {OUTER: "pull"}  # hubs find most
    assert chosen(1000, 10, direction="push") == {OUTER: "push"}
    assert chosen(10, 1000, direction="pull") == {OUTER: "pull"}

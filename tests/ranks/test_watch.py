"""What a watch takes for a rank that stands still, and for ranks that wait."""

import numpy as np
import pytest

from distbfs.ranks.watch import BEAT, PULSE, TURN, Watch


@pytest.fixture
def watch():
    """Two ranks of one host, both in a collective call."""
    made = object.__new__(Watch)
    made._board = np.ones((2, 1 + max(PULSE, TURN)), np.int64)
    made._ranks, made._beside = [0, 1], {}
    made._seen, made._silent = [(0, 0)] * 2, [0.0] * 2
    made._turns, made._waited = made._board[:, TURN].copy(), 0.0
    return made


def beats(watch, count, *alive):
    for _ in range(count):
        for row in alive:
            watch._board[row, PULSE] += 1
        watch._look()


def test_ranks_that_live_wait_for_one_another(watch):
    beats(watch, 20, 0, 1)
    assert watch._waited == 20 * BEAT
    assert watch._silent == [0, 0]
    watch._board[1, TURN] += 1  # its call is over
    beats(watch, 1, 0, 1)
    assert watch._waited == 0


def test_who_stands_still_is_not_waiting(watch):
    """It is told as such, however long the others waited for it before."""
    beats(watch, 8, 0, 1)
    beats(watch, 8, 0)
    assert watch._silent == [0, 8 * BEAT]
    assert watch._waited == 10 * BEAT

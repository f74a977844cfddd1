"""An error of one rank is raised on all of them."""

import pytest
from worlds import on_ranks

from distbfs.errors import OutOfMemory, ResourceError, UsageError
from distbfs.ranks.agreement import errors_of_all


def raised(errors, kind=ResourceError):
    """The class and message of the error of each rank, None if there is none."""

    def work(world):
        try:
            with errors_of_all(world, kind):
                if error := errors[world.rank]:
                    raise error
        except Exception as error:  # noqa: BLE001
            return type(error), str(error)

    return on_ranks(len(errors), work)


def test_nothing():
    assert raised([None, None]) == [None, None]


@pytest.mark.parametrize("failing", [0, 1])
def test_one_rank(failing):
    errors = [None, None]
    errors[failing] = OutOfMemory("no room")
    assert raised(errors) == [(OutOfMemory, f"rank {failing}: no room")] * 2


def test_the_first_of_two_different_errors():
    errors = [None, ResourceError("no disk"), OutOfMemory("no room")]
    assert raised(errors) == [(ResourceError, "rank 1: no disk")] * 3


def test_what_all_ranks_have_names_none():
    errors = [UsageError("wrong"), UsageError("wrong")]
    assert raised(errors, UsageError) == [(UsageError, "wrong")] * 2


def test_a_class_of_its_own_is_its_nearest_public_one():
    class Special(OutOfMemory):
        pass

    assert raised([None, Special("no room")]) == [
        (OutOfMemory, "rank 1: no room"),
        (OutOfMemory, "rank 1: no room"),
    ]


def test_bytes_that_are_no_text():
    """Names and lines of files have them, as lone surrogates."""
    name = b"a\x80.el".decode(errors="surrogateescape")
    text = f"{name}: no id \u2191"
    errors = [None, UsageError(text)]
    assert raised(errors, UsageError) == [(UsageError, f"rank 1: {text}")] * 2

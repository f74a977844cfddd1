"""Short texts that ranks gather to agree on a choice or an error."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import xxhash

from distbfs import errors
from distbfs.errors import DistbfsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from distbfs.types import World

SHOWN = 60


def gather_texts(world: World, text: str) -> list[str]:
    """Return the text of each rank; collective.

    Names and lines of files may have bytes that are no text, as lone surrogates.
    """
    # mutant: "surrogatepass" -> "strict" : test_bytes_that_are_no_text
    encoding = "utf-8", "surrogatepass"
    own = np.frombuffer(text.encode(*encoding), dtype=np.uint8)
    return [array.tobytes().decode(*encoding) for array in world.allgather(own)]


def first_reason(world: World, reason: str) -> str:
    """Return the first nonempty reason, with its rank; collective."""
    for rank, text in enumerate(gather_texts(world, reason)):
        if text:
            return text if world.size == 1 else f"rank {rank}: {text}"
    return ""


@contextmanager
def errors_of_all(
    world: World, kind: type[DistbfsError] = DistbfsError
) -> Iterator[None]:
    """Raise an error of one rank on all of them, at the end (collective).

    kind: the class of these errors; its subclasses stay as they are, and the message
    names the rank unless all ranks have the same
    """
    problem: DistbfsError | None = None
    try:
        yield
    except kind as error:
        problem = error
    text = ""
    if problem is not None:
        names = [one.__name__ for one in type(problem).__mro__]
        text = f"{next(name for name in names if hasattr(errors, name))} {problem}"
    texts = gather_texts(world, text)
    try:
        if problem is not None and len(set(texts)) == 1:
            raise problem
        for rank, other in enumerate(texts):
            if other:
                name, _, message = other.partition(" ")
                raise getattr(errors, name)(f"rank {rank}: {message}") from problem
    finally:
        del problem  # its traceback has this frame, and arrays of those below


def first_difference(world: World, facts: Mapping[str, object]) -> str:
    """Return the first fact in which a rank differs from rank 0, "" if there is none.

    facts: name -> JSON value

    Collective: one small reduction, and more if ranks differ.
    """
    digest = xxhash.xxh3_64_intdigest(json.dumps(facts).encode())
    ends = np.array([digest, digest ^ 0xFFFFFFFFFFFFFFFF], dtype=np.uint64)
    most, least = world.allreduce(ends, "max")
    if most == ~least:
        return ""
    first = world.broadcast(facts)
    reason = ""
    for name in dict.fromkeys([*facts, *first]):
        own, reference = (json.dumps(x.get(name))[:SHOWN] for x in (facts, first))
        if facts.get(name) != first.get(name):
            reason = reason or f"{name} is {own}, on rank 0 {reference}"
    return first_reason(world, reason)

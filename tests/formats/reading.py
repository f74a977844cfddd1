"""Read files with both parsers, which must agree."""

import tempfile
from contextlib import contextmanager
from itertools import chain

import numpy as np
import pytest
import xxhash

from distbfs.device import cc
from distbfs.errors import InputError
from distbfs.formats import pairs
from distbfs.formats.base import ReaderOptions, read_files


@contextmanager
def spooling(folder):
    """Let spools be made in a folder, where a test sees them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(folder))
        yield


@contextmanager
def compiling(compiled=True):
    """Let formats use their C kernels, or Python as where there is no compiler."""
    with pytest.MonkeyPatch.context() as patch:
        if not compiled:
            patch.setattr(cc, "load_or_none", lambda source: None)
        yield


WAYS = [True, False] if cc.load_or_none(pairs.SOURCE) else [False]


def read(kind, path, **options):
    """Read with both parsers, which must agree; return (EdgeFile, pairs)."""
    answers = []
    for compiled in WAYS:
        parts = []

        def take(piece, parts=parts):
            assert piece.dtype == np.int64
            assert piece.shape[1:] == (2,)
            assert len(piece)
            parts.append(piece.tolist())

        with compiling(compiled):
            edge_file = read_files(kind(ReaderOptions(**options)), [path], take)
        answers.append((edge_file, list(chain.from_iterable(parts))))
    assert all(x == answers[0] for x in answers)
    edge_file, edges = answers[0]
    assert edge_file.tuples == len(edges)
    assert edge_file.format == kind.name
    digest = xxhash.xxh3_128(path.read_bytes()).hexdigest()
    assert edge_file.digest == digest
    return edge_file, edges


def refusal(kind, path, **options):
    """Return the one message that both parsers give."""
    messages = []
    for compiled in WAYS:
        with compiling(compiled), pytest.raises(InputError) as error:
            read_files(kind(ReaderOptions(**options)), [path], lambda piece: None)
        messages.append(str(error.value))
    assert len(set(messages)) == 1
    assert "\n" not in messages[0]
    return messages[0].removeprefix(str(path))

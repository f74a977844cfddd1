"""What searches are expected to read of tails, against counts of searches."""

from functools import cache

import numpy as np
import pytest
from device_graphs import HostGraph
from graphs import kronecker, uniform
from tail_counts import rows_of, tail_reads

from distbfs.engines.base import TAIL_COUNTS
from distbfs.engines.cuda.xbfs.link_reads import expected_reads
from distbfs.engines.cuda.xbfs.search import FastSearch
from distbfs.graph.degrees import DegreeHistogram
from distbfs.plan.memory import expected_degrees

# Mean columns and bytes that searches of Kronecker graphs read, by ``tail_reads``, from
# 400 roots (scale 18) and 160 (20): by scale and kept
COUNTED = {
    (18, 8): (0.007221 * 7610904, 299744),
    (18, 16): (0.006702 * 7610904, 229204),
    (18, 64): (0.003723 * 7610904, 116265),
    (18, 256): (0.001504 * 7610904, 46357),
    (18, 1024): (0.001468 * 7610904, 45184),
    (20, 8): (0.006863 * 31404412, 1384675),
    (20, 16): (0.006141 * 31404412, 846111),
    (20, 64): (0.002968 * 31404412, 377321),
    (20, 256): (0.001095 * 31404412, 139044),
    (20, 1024): (0.000757 * 31404412, 95726),
}


def histogram_of(source):
    degrees = np.diff(source.matrix.tocsr().indptr)
    return DegreeHistogram(*np.unique(degrees, return_counts=True))


large = cache(kronecker)
degrees_of = cache(expected_degrees)
rows_once = cache(rows_of)


def counted(source, kept, roots):
    """Return the mean (columns, bytes) of searches from random roots."""
    offsets, columns = rows_once(source)
    drawn = np.random.default_rng(1).integers(0, len(offsets) - 1, roots)
    sums = sum(tail_reads(offsets, columns, root, kept) for root in drawn.tolist())
    return sums / roots * (1, 128)


@pytest.mark.parametrize("kept", [8, 40])
@pytest.mark.parametrize(
    "source", [kronecker(11), uniform(2000, 32_000)], ids=["kronecker", "uniform"]
)
def test_counts_are_those_of_the_engine(device, source, kept):
    """The rules of the count in NumPy, which the larger graphs below are counted by."""
    made = HostGraph(source)
    search = FastSearch(made.split(kept))
    wanted, engine = np.zeros(2), np.zeros(2)
    offsets, columns = rows_of(source)
    degrees = np.diff(source.matrix.tocsr().indptr)
    numbers = np.argsort(np.argsort(-degrees, kind="stable"))
    for root in np.random.default_rng(3).choice(np.flatnonzero(degrees), 12).tolist():
        wanted += tail_reads(offsets, columns, int(numbers[root]), kept) * (1, 128)
        records = search.search(root, records=True).records
        engine += [sum(x.extra[name] for x in records) for name in TAIL_COUNTS]
    assert engine[0] == pytest.approx(wanted[0], rel=0.1)
    assert engine[1] == pytest.approx(wanted[1], rel=0.1)


@pytest.mark.thorough
@pytest.mark.parametrize("kept", [8, 64, 256])
def test_reads_of_a_kronecker_graph(kept):
    """Small ones are the hardest: their hubs are joined more than at random."""
    source = large(14)
    reads = expected_reads(histogram_of(source), kept)
    columns, size = counted(source, kept, 30)
    assert 1 / 1.7 < reads.columns / columns < 1.7
    assert 1 / 2.2 < reads.bytes / size < 2.2
    assert reads.visits * 128 <= reads.bytes
    assert reads.lines >= reads.columns / 32


@pytest.mark.thorough
@pytest.mark.parametrize(("scale", "kept"), COUNTED)
def test_reads_of_larger_kronecker_graphs(scale, kept):
    """From the degrees that ``plan`` expects, nothing of the graph itself."""
    columns, size = COUNTED[scale, kept]
    reads = expected_reads(degrees_of(scale, 16), kept)
    assert 1 / 2 < reads.columns / columns < 2
    assert 1 / 2 < reads.bytes / size < 2


@pytest.mark.thorough
@pytest.mark.parametrize("kept", [8, 16, 32])
def test_reads_of_a_graph_without_hubs(kept):
    source = uniform(1 << 13, 16 << 13)
    reads = expected_reads(histogram_of(source), kept)
    columns, size = counted(source, kept, 25)
    assert 1 / 1.5 < reads.columns / columns < 1.5
    assert 1 / 1.5 < reads.bytes / size < 1.5


def test_reads_fall_with_what_is_kept_and_with_devices():
    degrees = degrees_of(20, 16)
    every = [expected_reads(degrees, kept) for kept in (8, 64, 4096, 1 << 20)]
    sizes = [x.bytes for x in every]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 0
    assert sizes[-1] == 0
    half = expected_reads(degrees, 8, devices=2)
    assert 2 * half.bytes == pytest.approx(sizes[0])
    empty = DegreeHistogram(np.array([0]), np.array([100]))
    assert expected_reads(empty, 8).bytes == 0


def test_reads_between_domains():
    """A domain has its share of the reads; rows of delegates are dealt to all."""
    degrees = degrees_of(20, 16)
    whole = expected_reads(degrees, 64)
    delegates = expected_reads(degrees, 64, 4, 0)  # rows of a quarter, in all domains
    quarter = expected_reads(degrees, 16)
    assert delegates.columns < whole.columns
    assert 4 * delegates.columns == pytest.approx(quarter.columns, rel=0.5)
    some = expected_reads(degrees, 64, 4, 100)
    assert 0 < some.columns < whole.columns

"""Pieces that threads work on ahead: their order, and what fails."""

import threading
import time

import numpy as np
import pytest

from distbfs.formats import gap_sg
from distbfs.formats import read_ahead as ahead
from distbfs.formats.base import ReaderOptions, make_reader
from distbfs.formats.read_ahead import in_order
from distbfs.formats.writing import Edges, writer_for


@pytest.fixture(params=[1, 2, 5])
def workers(request, monkeypatch):
    monkeypatch.setattr(ahead, "thread_count", lambda: request.param)
    return request.param


def test_results_come_in_order(workers):
    def work(job):
        time.sleep(0.002 * (job % 3))
        return job

    assert list(in_order(work, range(40))) == list(range(40))


def test_no_jobs(workers):
    assert list(in_order(lambda job: job, [])) == []


def test_an_error_comes_in_its_place(workers):
    def work(job):
        if job == 7:
            raise ValueError("seven")
        return job

    results = []
    with pytest.raises(ValueError, match="seven"):
        results.extend(in_order(work, range(90)))
    assert results == list(range(7))


def test_who_stops_early_waits_for_no_more(workers):
    done = []
    results = in_order(done.append, range(1000))
    next(results)
    results.close()
    assert len(done) <= 2 * workers + 2
    assert threading.active_count() < 20


def test_a_graph_in_many_pieces(workers, monkeypatch, tmp_path):
    rng = np.random.default_rng(3)
    pairs = np.unique(np.sort(rng.integers(0, 90, (900, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    path = tmp_path / "a.sg"
    writer_for(path).write(path, Edges(90, len(pairs), lambda: iter([pairs])))
    monkeypatch.setattr(gap_sg, "CHUNK", 17)
    edges = []
    reader = make_reader(path, "", ReaderOptions())
    edge_file = reader.read(path, lambda some: edges.extend(some.tolist()))
    assert edges == pairs.tolist()
    assert edge_file.tuples == len(pairs)

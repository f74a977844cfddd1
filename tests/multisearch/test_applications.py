"""What holds for every application of the registry."""

from dataclasses import fields

import numpy as np
import pytest
from graphs import NAMED

import distbfs
from distbfs import registry
from distbfs.cli.options import multisearch
from distbfs.errors import UsageError

EACH = pytest.mark.parametrize("name", registry.APPS)
SOURCE = NAMED["two-components"]


def application(name):
    return registry.lookup(registry.APPS, "application", name)


def options(name):
    return fields(application(name).options)


def results(name, engine, **own):
    graph = distbfs.Graph.from_edges(SOURCE.u, SOURCE.v, n=SOURCE.n)
    places = {
        "sources": [0, SOURCE.n - 1, 0],
        "pairs": [(0, SOURCE.n - 1), (0, 1)],
        "nothing": None,
    }
    taken = places[application(name).takes]
    return distbfs.search_many(graph, name, taken, engine, **own)


@pytest.mark.thorough
@EACH
def test_engines_agree(name):
    one, other = (results(name, engine) for engine in ("reference", "openmp"))
    assert one.values.keys() == other.values.keys()
    for array in one.values:
        np.testing.assert_allclose(one[array], other[array], rtol=1e-12)
    assert bool(one.values) == application(name).writes


@EACH
def test_sources_given_twice(name):
    app, values = application(name), results(name, "reference").values
    if app.takes == "sources" and "sources" in values:
        assert len(values["sources"]) == (3 if app.repeats else 2)


@EACH
def test_its_options_and_no_others(name):
    own = {option.name for option in options(name)}
    every = {option.name for app in registry.APPS for option in options(app)}
    for option in sorted(every - own):
        with pytest.raises(UsageError, match=f"{name} has no option '{option}'; allow"):
            results(name, "reference", **{option: 1})
    usual = {option.name: option.default for option in options(name)}
    plain, said = results(name, "reference"), results(name, "reference", **usual)
    for array in plain.values:
        np.testing.assert_array_equal(plain[array], said[array])


def test_options_of_the_command_have_names_of_their_own():
    names = [parameter.name for parameter in multisearch.command.params]
    assert len(set(names)) == len(names)


def test_an_application_that_is_none():
    graph = distbfs.Graph.from_edges([0], [1])
    with pytest.raises(UsageError, match="unknown application 'x'; allowed: apsp"):
        distbfs.search_many(graph, "x", None)

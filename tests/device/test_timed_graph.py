"""What a timed graph asks of the driver, in which order; the driver is none."""

import ctypes
from types import SimpleNamespace

import pytest

from distbfs.device import cuda
from distbfs.device.timed_graph import NOT_READY, NodeParameters, TimedGraph
from distbfs.errors import ResourceError

FUNCTION, NODE = 77, 5


class Driver:
    """Notes the names of calls; knows one kernel node."""

    def __init__(self):
        self.names = []

    def __getattr__(self, name):
        def call(*arguments):
            self.names.append(name)
            return getattr(self, "_" + name, lambda *_: 0)(*arguments)

        if name.startswith("_"):
            raise AttributeError(name)
        return call

    def _cuGraphGetNodes(self, _, nodes, count):
        ctypes.cast(count, ctypes.POINTER(ctypes.c_size_t))[0] = 1
        if nodes is not None:
            nodes[0] = NODE
        return 0

    def _cuGraphKernelNodeGetParams_v2(self, node, address):
        assert node.value == NODE
        parameters = ctypes.cast(address, ctypes.POINTER(NodeParameters))[0]
        parameters.function = FUNCTION
        return 0


@pytest.fixture
def driver(monkeypatch):
    stand_in = Driver()
    monkeypatch.setattr(cuda, "driver", lambda: stand_in)
    return stand_in


def launch(function=FUNCTION):
    def begin(stream):
        pass

    begin.kernel = SimpleNamespace(
        name="search", function=SimpleNamespace(ptr=function)
    )
    begin.parameters = (ctypes.c_void_p * 1)()
    return begin


def test_a_graph_is_recorded_once_and_launched_with_new_arguments(driver):
    graph = TimedGraph([launch()], [])
    assert driver.names.count("cuGraphInstantiateWithFlags") == 1
    assert driver.names.count("cuEventRecordWithFlags") == 2
    driver.names.clear()
    for _ in range(2):
        graph.set_arguments()
        graph.launch()
        assert graph.wait() == 0.0
    once = ["cuGraphExecKernelNodeSetParams_v2", "cuGraphLaunch"]
    once += ["cuEventSynchronize", "cuEventElapsedTime"]
    assert driver.names == once * 2


def test_what_comes_back_is_waited_for(driver):
    """It comes by one more kernel, behind the event that ends the time."""

    def last(stream):
        driver.names.append("last")

    graph = TimedGraph([launch()], [], last)
    record = "cuEventRecordWithFlags"
    recorded = [x for x in driver.names if x in (record, "last")]
    assert recorded == [record, record, "last", record]
    driver.names.clear()
    graph.wait()
    assert driver.names == ["cuEventSynchronize", "cuEventElapsedTime"]
    assert graph._end not in graph._span[1:]


class Word:
    """Watches for as long as nothing has ended; notes when it is cleared."""

    def __init__(self, names):
        self.names = names

    def watch(self, ended):
        while not ended():
            pass
        return True

    def clear(self):
        self.names.append("clear")


def test_a_word_is_watched_until_the_end_and_cleared_after_it(driver):
    graph = TimedGraph([launch()], [])
    answers = [NOT_READY, NOT_READY, 0]
    driver._cuEventQuery = lambda *_: answers.pop(0)
    driver.names.clear()
    assert graph.wait(Word(driver.names)) == 0.0
    assert driver.names == ["cuEventQuery"] * 3 + ["clear", "cuEventElapsedTime"]
    answers[:] = [700]
    driver.names.clear()
    with pytest.raises(ResourceError, match=r"cuEventQuery for search: .*\(700\)"):
        graph.wait(Word(driver.names))
    end = ["cuEventSynchronize", "clear"]
    assert driver.names[-2:] == end, "the word is cleared whatever happens"


def test_a_graph_without_its_kernel(driver):
    with pytest.raises(ResourceError, match="the graph of search lacks a kernel"):
        TimedGraph([launch(FUNCTION + 1)], [])


def test_a_call_that_fails(driver):
    graph = TimedGraph([launch()], [])
    driver._cuGraphLaunch = lambda *_: 700
    with pytest.raises(ResourceError, match=r"launch of search: .*\(700\)"):
        graph.launch()

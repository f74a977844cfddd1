"""Tests that passed with the same content, which a run may leave out.

With ``--leave-out-unchanged`` a run leaves out the tests that passed in an earlier one
with this option.  Those that pass, in files of which none fails, are listed in the
cache folder by the key of their file (``closures``).
"""

import json
import time
from collections import defaultdict
from contextlib import suppress

import pytest
from closures import Tree, digest

from distbfs.device.cache import cache_folder, exclusive, is_sound

OPTION = "--leave-out-unchanged"
NAME = "tests_passed.json"  # {key of a file: [seconds, [digests of its tests]]}
MOST = 5000  # keys that are kept, the newest


def add_option(parser):
    about = "with --quick: leave out tests that passed with the same content"
    parser.getgroup("tiers").addoption(OPTION, action="store_true", help=about)


def configure(config):
    """Find what passed, in the process that leads the others or is alone."""
    if not config.option.leave_out_unchanged:
        return
    if not config.option.quick:
        raise pytest.UsageError(f"{OPTION} needs --quick: a run of all cases has all")
    if getattr(config.option, "with_mpi", False):
        raise pytest.UsageError(f"{OPTION} goes without --with-mpi: ranks run the same")
    if not hasattr(config, "workerinput"):
        plugin = Passed(Tree(), cache_folder() / NAME)
        config.pluginmanager.register(plugin, OPTION)


def leave_out(config, items):
    """Leave out tests that passed, in place, in each process that collects."""
    if not config.option.leave_out_unchanged:
        return
    plugin = config.pluginmanager.get_plugin(OPTION)
    before = plugin.before if plugin else config.workerinput["passed"]
    before = {name: {*tests} for name, tests in before.items()}
    kept, left = [], []
    for item in items:
        passed = digest(item.nodeid) in before.get(file_of(item.nodeid), ())
        (left if passed else kept).append(item)
    counts = len(left), len({file_of(item.nodeid) for item in left})
    if plugin:
        plugin.left_out = counts
    else:
        config.workeroutput["left_out"] = counts
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


def file_of(nodeid):
    return nodeid.partition("::")[0]


def load(path):
    with suppress(OSError, ValueError):
        if is_sound(path):
            return json.loads(path.read_text())
    return {}


class Passed:
    """What passed before, and what passes in this run.

    path: of the list
    """

    def __init__(self, tree, path):
        self.tree, self.path, self.began = tree, path, time.time()
        self.keys, known = tree.keys(), load(path)
        keys = {name: key for name, key in self.keys.items() if key in known}
        self.before = {name: known[key][1] for name, key in keys.items()}
        self.outcomes, self.left_out, self.problem = defaultdict(list), (0, 0), ""

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node):
        node.workerinput["passed"] = self.before

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        self.left_out = getattr(node, "workeroutput", {}).get("left_out", self.left_out)

    def pytest_runtest_logreport(self, report):
        self.outcomes[report.nodeid].append(report.outcome)

    def pytest_sessionfinish(self, session, exitstatus):
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.left_out[0]:
            session.exitstatus = pytest.ExitCode.OK
        if self.tree.last_change() < self.began:
            self.save()
        else:
            self.problem = "; no test of this run is listed: files have changed"

    def pytest_terminal_summary(self, terminalreporter):
        tests, files = self.left_out
        terminalreporter.write_line(
            f"{OPTION}: not run again, as they passed with the same content: "
            f"{tests} tests of {files} files{self.problem}"
        )

    def save(self):
        """List the tests that passed, of files of which none failed."""
        files = defaultdict(dict)
        for nodeid, outcomes in self.outcomes.items():
            files[file_of(nodeid)][nodeid] = outcomes
        with exclusive(self.path.with_suffix(".lock")):
            known, now = load(self.path), time.time()
            for key in known.keys() & {self.keys[name] for name in self.before}:
                known[key] = now, known[key][1]
            for name, tests in files.items():
                passed = {x for x, y in tests.items() if y == ["passed"] * 3}
                failed = any("failed" in outcomes for outcomes in tests.values())
                if passed and not failed and name in self.keys:
                    _, before = known.get(self.keys[name], (0, []))
                    every = {*before, *map(digest, passed)}
                    known[self.keys[name]] = now, sorted(every)
            newest = sorted(known.items(), key=lambda entry: entry[1][0])[-MOST:]
            making = self.path.with_suffix(".making")
            making.write_text(json.dumps(dict(newest)))
            making.replace(self.path)

"""The service: random requests over stdin or a socket, good and bad, each checked."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np

import distbfs
from distbfs.errors import ServiceError
from trials.checker import Wrong, check_counts, check_path, check_search, equal
from trials.files import Written
from trials.stores import make_store, name_in
from trials.trial import SECONDS, Trial, environment

BAD: tuple[dict[str, Any], ...] = (
    {"op": "distances"},
    {"op": "nothing"},
    {"op": "bfs", "source": -1},
    {"op": "bfs", "source": 1 << 70},
    {"op": "bfs", "source": 0.5},
    {"op": "bfs", "source": [0]},
    {"op": "distances", "targets": 5},
    {"op": "distances", "targets": [None]},
    {"op": "bfs", "size": 1},
    {"op": "bfs", "result": "other"},
    {"op": "bfs", "deadline": "soon"},
)
OPS = ("distances", "distances", "path", "bfs", "bfs", "bad")
NO_REQUESTS = ("{", "[]", "null", '{"op": "bfs"', "bfs 0", "7")


def run(trial: Trial) -> None:
    """Serve a store and ask many things of it."""
    made, store, _ = make_store(trial, most=3000)
    words = [sys.executable, "-m", "distbfs", "serve", str(store)]
    words += ["--max-inline", "20000"]  # more than any answer has
    trial.note(" ".join(words))
    asked = [request(trial, made, number) for number in range(30 + trial.below(100))]
    trial.choose(over_stdin, over_socket)(trial, made, words, asked)


def over_stdin(
    trial: Trial, made: Written, words: list[str], asked: list[dict[str, Any]]
) -> None:
    """Ask everything at once, lines that are no requests too."""
    lines = [json.dumps(one) for one in asked]
    for _ in range(trial.below(4)):
        lines.insert(trial.below(len(lines)), trial.choose(*NO_REQUESTS))
    done = subprocess.run(
        [*words, "--queue", "1000"],
        input="\n".join([*lines, '{"op": "shutdown", "id": "end"}\n']),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=environment(),
        check=False,
    )
    equal("exit", done.returncode, 0, done.stderr[-300:])
    printed = [json.loads(line) for line in done.stdout.splitlines()[1:]]
    equal("answers", len(printed), len(lines) + 1, "answers")
    answers = {answer.get("id"): answer for answer in printed}
    if any(answer["ok"] for answer in printed if answer.get("id") is None):
        raise Wrong("answers", "a line that is no request was answered well")
    for one in asked:
        look(trial, made, one, answers[one["id"]])


def over_socket(
    trial: Trial, made: Written, words: list[str], asked: list[dict[str, Any]]
) -> None:
    """Ask by the package's client, request by request."""
    path = trial.folder / "s"
    with subprocess.Popen(
        [*words, "--socket", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        try:
            assert process.stdout is not None
            equal("ready", process.stdout.readline(), "ready\n", "first line")
            with distbfs.connect(path, timeout=SECONDS) as client:
                for one in asked:
                    fields = {k: v for k, v in one.items() if k not in ("op", "id")}
                    try:
                        answer = {"ok": True, **client.call(one["op"], **fields)}
                    except ServiceError as error:
                        answer = {"ok": False, "error": {"code": error.code}}
                    look(trial, made, one, answer)
                client.shutdown()
            equal("exit", process.wait(SECONDS), 0, "exit code")
        finally:
            process.kill()


def request(trial: Trial, made: Written, number: int) -> dict[str, Any]:
    """Return a request; the id of a bad one is below 0."""
    n, op = made.truth.n, trial.choose(*OPS)

    def called(vertex: int) -> Any:
        return int(vertex) if made.names is None else made.names[vertex]

    one: dict[str, Any] = {"id": 1 + number, "op": op, "source": called(trial.below(n))}
    if op == "bad":
        return {**one, **trial.choose(*BAD), "id": -1 - number}
    if op == "distances":
        one["targets"] = [called(v) for v in trial.vertices(n, 9)]
    elif op == "path":
        one["target"] = called(trial.below(n))
    else:
        one["result"] = trial.choose("inline", "summary")
        if one["result"] != "summary":
            one["parents"] = trial.chance(0.7)
    return one


def look(
    trial: Trial, made: Written, asked: dict[str, Any], answer: dict[str, Any]
) -> None:
    """Raise Wrong unless an answer is right."""
    truth, op = made.truth, asked["op"]
    where = f"{asked} answered {answer!r:.300}"
    equal("answers", answer["ok"], asked["id"] > 0, where)
    trial.searches += 1
    if asked["id"] < 0:
        return
    vertex = {name_in(made, v): v for v in range(truth.n)}
    source = vertex[str(asked["source"])]
    if op == "bfs":
        look_at_levels(made, source, answer, vertex)
        return
    level = truth.levels(source)
    if op == "path":
        way, target = answer["path"], vertex[str(asked["target"])]
        steps = None if way is None else [vertex[str(name)] for name in way]
        check_path(truth, steps, source, target)
        equal("level", answer["distance"], int(level[target]), where)
        return
    targets = [vertex[str(name)] for name in asked["targets"]]
    equal("level", answer["distances"], level[targets].tolist(), where)


def look_at_levels(
    made: Written, source: int, row: dict[str, Any], vertex: dict[str, int]
) -> None:
    """Look at counts, and at levels and parents that came inline.

    vertex: of each name
    """
    truth, ids = made.truth, row.get("ids")
    check_counts(truth, source, row)
    wanted = truth.levels(source)
    counts = np.bincount(wanted[wanted >= 0]).tolist()
    equal("level", row["levels"], counts, f"levels from {source}")
    if "level" not in row:
        return
    place = np.arange(truth.n)
    if ids is not None:
        place[[vertex[str(name)] for name in ids]] = np.arange(truth.n)
    level = np.array(row["level"], dtype=np.int32)[place]
    parent = row.get("parent")
    if parent is not None:
        by_place = [vertex.get(str(name), -1) for name in parent]
        parent = np.array(by_place, dtype=np.int64)[place]
    check_search(truth, source, level, parent, parents=parent is not None)

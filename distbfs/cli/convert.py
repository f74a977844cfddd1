"""``distbfs convert``: read somebody's graph file and store it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from distbfs.terminal.graph_file import FileOptions, read_file
from distbfs.terminal.options import Speech
from distbfs.terminal.shared import make_build_options, open_terminal, share_of_cores
from distbfs.terminal.store_writing import check_target, devices_to_build, store_graph
from distbfs.timing import Stopwatch


def run(
    path: Path,
    output: Path,
    force: bool,
    vertices: int | None,
    permute_seed: int,
    parts: int | None,
    threshold: int | None,
    pass_gib: float,
    on_devices: bool,
    speech: Speech,
    **choices: Any,
) -> None:
    """Run the command; see ``cli/options/convert.py``."""
    terminal = open_terminal(speech)
    reading = FileOptions.taken(choices)
    directed = reading.directed
    count = parts or terminal.world.size
    check_target(terminal, output, count, force=force, directed=directed)
    options = make_build_options(
        threshold=threshold,
        pass_gib=pass_gib,
        permute_seed=permute_seed if count > 1 else None,
        threads=share_of_cores(terminal.world),
        directed=directed,
    )
    devices = devices_to_build(terminal, directed=directed) if on_devices else None
    watch = Stopwatch()
    with watch("reading"):
        source = read_file(terminal, path, reading, vertices)
    with source:
        store_graph(
            terminal,
            source,
            output,
            count,
            options,
            force=force,
            ids=source.ids,
            devices=devices,
            reading_seconds=watch.get("reading"),
        )
    for note in source.notes:
        terminal.say(note)

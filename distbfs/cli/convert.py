"""``distbfs convert``: read a graph file and store the graph."""

from __future__ import annotations

from distbfs.cli.graphs import (
    check_target,
    devices_to_build,
    read_file,
    store_graph,
)
from distbfs.cli.options.convert import ConvertOptions
from distbfs.cli.shared import open_terminal
from distbfs.timing import Stopwatch


def run(asked: ConvertOptions) -> None:
    """Run the command."""
    terminal = open_terminal(asked)
    count = asked.parts or terminal.world.size
    check_target(terminal, asked, count)
    devices = devices_to_build(terminal, asked)
    watch = Stopwatch()
    with watch("reading"):
        source = read_file(terminal, asked.path, asked, asked.vertices)
    with source:
        store_graph(
            terminal,
            source,
            asked,
            directed=asked.directed,
            seed=asked.permute_seed if count > 1 else None,
            devices=devices,
            ids=source.ids,
            reading_seconds=watch.get("reading"),
        )
    for note in source.notes:
        terminal.say(note)

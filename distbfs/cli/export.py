"""``distbfs export``: write a stored graph to a file of another format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from distbfs import registry
from distbfs.formats.ids import first_of
from distbfs.formats.writing import Edges, Writer, placed, writer_for
from distbfs.report.tables import print_fields
from distbfs.store.hdf5 import Store, open_store
from distbfs.store.tuples import StoreTuples
from distbfs.terminal.command import OUTPUT, Choice, FilePath, grouped_command
from distbfs.terminal.shared import (
    AT_ONCE,
    STORE,
    Speech,
    Terminal,
    open_terminal,
    output_options,
    stop_requests,
)
from distbfs.types import Ids


@grouped_command("export")
@click.argument("store", type=STORE)
@OUTPUT.option(
    "--output",
    "-o",
    type=FilePath(),
    required=True,
    help="File to write; text is compressed where it ends in .gz, .bz2, .xz or .zst.",
)
@OUTPUT.option("--force", is_flag=True, help="Replace a file that is there.")
@OUTPUT.option(
    "--format",
    "name",
    type=Choice(list(registry.WRITERS)),
    help="Format of the file; default: by its ending.",
)
@output_options
def command(
    store: Path,
    output: Path,
    force: bool,
    name: str | None,
    speech: Speech,
) -> None:
    """Write the edges of STORE, each once, without loops and repeats.

    convert reads a directed graph back with --directed.  Rank 0 writes, the others
    wait.
    """
    with stop_requests(AT_ONCE):  # on all ranks: the first one that ends, ends all
        terminal = open_terminal(speech)
        opened, writer = open_store(store), writer_for(output, name or "")
        if terminal.world.rank == 0:
            write(terminal, opened, writer, output, force=force)
        terminal.world.barrier()


def write(
    terminal: Terminal, store: Store, writer: Writer, output: Path, *, force: bool
) -> None:
    """Write the file, and say what it has."""
    manifest = store.manifest
    source = StoreTuples(store)
    m = manifest.m if manifest.directed else manifest.m // 2
    ids = store.load_ids()
    first = first_of(ids)

    def chunks() -> Iterator[Ids]:
        written = 0
        for pairs in source.edges():
            yield pairs
            written += len(pairs)
            done(written)

    with terminal.progress("writing", m) as done, placed(output, force=force) as at:
        kept = ids if writer.keeps_ids else None
        graph = Edges(manifest.n, m, chunks, kept, manifest.directed)
        writer.write(at, graph)
    if not writer.keeps_ids and first is None:
        terminal.say(f"{output}: vertices by number, without the ids of their file")
    elif not writer.keeps_ids and first != writer.first:
        terminal.say(
            f"{output}: {writer.name} counts vertices from {writer.first}, the store "
            f"from {first}"
        )
    values = {
        "store": str(store.folder),
        "file": str(output),
        "format": writer.name,
        "n": manifest.n,
        "edges": m,
        "bytes": output.stat().st_size,
    }
    shown = {{"n": "vertices"}.get(key, key): x for key, x in values.items()}
    terminal.result(values, lambda: print_fields(shown))

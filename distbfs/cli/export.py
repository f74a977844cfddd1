"""``distbfs export``: write a stored graph to a file of another format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from distbfs.cli.options.export import ExportOptions
from distbfs.cli.shared import AT_ONCE, Terminal, open_terminal, stop_requests
from distbfs.formats.ids import first_of
from distbfs.formats.writing import Edges, Writer, placed, writer_for
from distbfs.leftovers import DASH
from distbfs.report.tables import print_fields
from distbfs.store.hdf5 import Store, open_store
from distbfs.store.tuples import StoreTuples
from distbfs.types import Ids


def run(asked: ExportOptions) -> None:
    """Run the command."""
    with stop_requests(AT_ONCE):  # on all ranks: the first one that ends, ends all
        terminal, output = open_terminal(asked), asked.output
        terminal.stdout_place(output)
        usual = "edge-list" if output == DASH else ""
        opened = open_store(asked.store)
        writer = writer_for(output, asked.format or usual)
        if terminal.world.rank == 0:
            write(terminal, opened, writer, output, force=asked.force)
        terminal.world.barrier()


def write(
    terminal: Terminal, store: Store, writer: Writer, output: Path, *, force: bool
) -> None:
    """Write the file, and report its contents."""
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
    about = {"store": str(store.folder), "file": str(output), "format": writer.name}
    size = None if output == DASH else output.stat().st_size
    values = {**about, "vertices": manifest.n, "edges": m, "bytes": size}
    terminal.result(values, lambda: print_fields(values), output)

"""Options that several commands have; no module that runs them is imported here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

from distbfs import registry
from distbfs.errors import UsageError
from distbfs.options import BALANCES, COUNT_DTYPES, FACTOR_OPTIONS, FRONTIERS
from distbfs.terminal.command import (
    ADVANCED,
    BUILDING,
    DEVICES,
    INPUT,
    OUTPUT,
    SEARCH,
    Choice,
    Decorated,
    FilePath,
    InputPath,
    with_options,
)
from distbfs.terminal.sizes import whole_size

STORE = FilePath()  # that is read: ranks compare what it holds
GRAPH = InputPath()  # likewise, or a file that rank 0 reads
PLACE = FilePath()
SPREAD = 1  # usual seed of the hash that spreads vertices over parts


@dataclass(frozen=True)
class Speech:
    """What a command prints beside its result, and how.

    as_json: of the result; log_format: of messages; quiet: warnings and errors alone;
    verbose: also why something was chosen, and how a graph is stored
    """

    as_json: bool = False
    log_format: str = "text"
    quiet: bool = False
    verbose: bool = False


def output_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of what a command prints; it takes them as one, ``speech``."""

    @OUTPUT.option(
        "--json", "json_output", is_flag=True, help="Print the result as JSON."
    )
    @OUTPUT.option(
        "--log-format",
        type=Choice(["text", "json"]),
        default="text",
        help="How messages on stderr look.  [text]",
    )
    @OUTPUT.option(
        "--quiet",
        "-q",
        is_flag=True,
        help="Print no more than results, warnings and errors.",
    )
    @OUTPUT.option(
        "--verbose",
        "-v",
        is_flag=True,
        help="Print more: version and ranks, why an engine was taken, how a graph is "
        "stored.",
    )
    @wraps(function)
    def command(
        *arguments: Any,
        json_output: bool,
        log_format: str,
        quiet: bool,
        verbose: bool,
        **options: Any,
    ) -> Any:
        if quiet and verbose:
            raise UsageError("give either --quiet or --verbose")
        speech = Speech(json_output, log_format, quiet, verbose)
        return function(*arguments, speech=speech, **options)

    return command


patience_option = ADVANCED.option(
    "--patience",
    type=click.FloatRange(1),
    help="End the run with exit code 1 after this many seconds without progress "
    "between ranks; a slow rank of this host is waited for.  Default: no limit.",
)

trace_option = OUTPUT.option(
    "--trace",
    "trace_file",
    type=FilePath(),
    help="File for the phases of all ranks, in Chrome's trace format.",
)

energy_option = OUTPUT.option(
    "--energy",
    "with_energy",
    is_flag=True,
    help="Repeat the searches and print the energy they take, by NVML and RAPL.",
)

build_options = with_options(
    BUILDING.option(
        "--parts", type=click.IntRange(1), help="Parts of the graph.  [one a rank]"
    ),
    BUILDING.option(
        "--threshold",
        "-t",
        type=click.IntRange(0),
        help="Degree threshold TH: vertices above it are delegates.  [by degrees]",
    ),
    BUILDING.option(
        "--memory",
        "pass_gib",
        type=click.FloatRange(0, min_open=True),
        default=4.0,
        help="GiB of raw edges that are held while building; less takes more passes, "
        "but a pass builds at least one part.  [4]",
    ),
)

on_devices_option = BUILDING.option(
    "--on-devices",
    is_flag=True,
    help="Build on CUDA devices, one a rank or more.  Vertices keep the order of ids; "
    "engine openmp searches such a store more slowly.",
)

directed_option = INPUT.option(
    "--directed",
    is_flag=True,
    help="Edges lead one way, from the first id to the second; the graph has one part "
    "and is searched by one process.",
)

first_id_option = INPUT.option(
    "--first-id",
    type=click.IntRange(0, 1),
    help="Count vertices from 0 or from 1, whatever their file does, where you name "
    "them and in results.  [as in the file]",
)

file_options = with_options(
    INPUT.option(
        "--format",
        "name",
        type=Choice(list(registry.READERS)),
        help="Format of the file.  [recognised by content and name]",
    ),
    INPUT.option(
        "--relabel",
        is_flag=True,
        help="Take ids with gaps, or any text: vertices are numbered anew, and results "
        "name them by these ids.",
    ),
    directed_option,
    INPUT.option(
        "--one-based/--zero-based",
        default=None,
        help="Where ids of an edge list, a table or NumPy pairs begin; other formats "
        "define it.  [zero-based; KONECT: one-based]",
    ),
    first_id_option,
    INPUT.option(
        "--columns",
        nargs=2,
        metavar="SRC DST",
        help="Names of the two columns with the ids, in a Parquet or Arrow table or in "
        "the first line of an edge list.  Default: src and dst, source and target, "
        "from and to, or u and v, else the first two.",
    ),
    INPUT.option(
        "--header/--no-header",
        default=None,
        help="Leave out the first line of an edge list, which names columns or states "
        "sizes, or take it as an edge.  [left out if it has usual names, or names "
        "above numbers]",
    ),
    INPUT.option(
        "--keep",
        multiple=True,
        metavar="COLUMN",
        help="Keep a column of a table or an edge list as an attribute of the edges, "
        "for --where of bfs; NAME=3 keeps the third column under a name.  Of a matrix, "
        "keep the values under this name.  May be given several times.  Of repeated "
        "edges the smallest value is kept.",
    ),
    INPUT.option(
        "--bipartite",
        is_flag=True,
        help="Read a matrix that is not square (Matrix Market, SciPy, KONECT of kind "
        "bip): rows are the first vertices, columns the vertices after them.",
    ),
)

permute_option = ADVANCED.option(
    "--permute-seed",
    type=click.IntRange(0, (1 << 64) - 1),
    default=SPREAD,
    help=f"Seed of the hash that spreads vertices over parts.  [{SPREAD}]",
)

paths_options = with_options(
    SEARCH.option(
        "--counts",
        type=click.Choice(COUNT_DTYPES),
        help="Count the shortest paths to each vertex, exactly or rounded, as 'paths' "
        "of the output.",
    ),
    SEARCH.option(
        "--paths-to", metavar="VERTEX", help="Print the shortest paths to a vertex."
    ),
    SEARCH.option(
        "--most-paths",
        type=click.IntRange(0),
        default=10,
        help="How many paths --paths-to prints at most.  [10]",
    ),
    SEARCH.option("--hops", type=click.IntRange(0), help="Search this many levels."),
    OUTPUT.option(
        "--edges",
        type=FilePath(),
        help="File in .csv or .tsv for the edges between reached vertices, with the "
        "levels of both ends, for one source; - is CSV on stdout.",
    ),
)


def graph_options(*, sources: int, multiple: bool) -> Callable[[Decorated], Decorated]:
    """Return the options of graphs that are built in memory, and of their sources.

    sources: how many where nothing is said; multiple: several graphs of a family
    """
    scale = click.IntRange(1, 48)
    return with_options(
        *(
            INPUT.option(f"--{name}", type=kind, multiple=multiple, help=text)
            for name, kind, text in (
                ("kronecker", scale, "Kronecker graph, 2^scale vertices."),
                (
                    "uniform",
                    scale,
                    "Uniform, 2^scale vertices, mean degree 32.",
                ),
                (
                    "road",
                    click.IntRange(4),
                    "Road-like graph of about this many vertices.",
                ),
            )
        ),
        INPUT.option(
            "--sources",
            "count",
            type=click.IntRange(1, 1 << 20),
            default=sources,
            help=f"Vertices of the largest component to search from.  [{sources}]",
        ),
        INPUT.option(
            "--seed", type=int, default=1, help="Seed of sources and graph.  [1]"
        ),
    )


memory_options = (
    DEVICES.option(
        "--device-memory",
        callback=whole_size,
        metavar="BYTES",
        help="Memory of each device for a graph and its searches, as 40GiB; neighbours "
        "that do not fit there go to host memory.  [what is free]",
    ),
    DEVICES.option(
        "--host-memory",
        callback=whole_size,
        metavar="BYTES",
        help="Memory of a host for the neighbours that do not fit on its devices.  "
        "[what this process may use]",
    ),
)

search_options = with_options(
    SEARCH.option(
        "--engine",
        type=Choice(["auto", *registry.ENGINES]),
        default="auto",
        help="Engine inside a domain; auto takes xbfs where every rank has a CUDA "
        "device, else openmp.  [auto]",
    ),
    SEARCH.option("--method", default="", help="Variant of the engine, as 'push'."),
    DEVICES.option(
        "--devices",
        type=click.IntRange(1),
        help="CUDA devices of each rank; default: its share of those of the host.",
    ),
    DEVICES.option(
        "--domain",
        type=click.IntRange(1),
        help="Devices of a domain, which search in shared memory; the last domain of a "
        "host may have fewer.  Default: all devices that map each other's memory.",
    ),
    DEVICES.option(
        "--threads",
        type=click.IntRange(0, 4096),
        default=0,
        help="Threads a rank; 0: this rank's share of the cores.  [0]",
    ),
    SEARCH.option("--no-levels", is_flag=True, help="Give parents only."),
    SEARCH.option("--no-parents", is_flag=True, help="Find levels only."),
    SEARCH.option(
        "--direction",
        type=Choice(["auto", "push", "pull"]),
        default="auto",
        help="Search in one direction only; auto chooses at each level.  [auto]",
    ),
    *(
        ADVANCED.option(
            f"--{name}-factors",
            nargs=2,
            type=click.FloatRange(0),
            metavar="PULL PUSH",
            help=f"Subgraph {name} turns to pull when its forward work is above PULL "
            "times its backward work, and back when it is below PUSH times that.",
        )
        for name in FACTOR_OPTIONS
    ),
    ADVANCED.option(
        "--stepwise",
        is_flag=True,
        help="Begin each level from the host, also where one launch could do a whole "
        "search.",
    ),
    ADVANCED.option(
        "--frontier",
        type=Choice(FRONTIERS),
        help="How engine xbfs-paper makes queues.  [auto]",
    ),
    ADVANCED.option(
        "--balance",
        type=Choice(("auto", *BALANCES)),
        help="How pulls of engines xbfs-paper and pan share their work.  [auto]",
    ),
    ADVANCED.option(
        "--no-async",
        is_flag=True,
        help="Let a pull of engine xbfs-paper find vertices of one level only.",
    ),
    ADVANCED.option(
        "--knobs",
        metavar="auto|K=V,...",
        help="Knobs k1 to k7 of engine bfs4k, as k1=8,k2=0.1; the others follow from "
        "the degrees.  [auto]",
    ),
    ADVANCED.option(
        "--internal-ids",
        is_flag=True,
        help="Leave the change to the input's ids out of the time of searches on "
        "devices.",
    ),
    ADVANCED.option(
        "--share-device",
        is_flag=True,
        help="Let several ranks of engine xbfs use one device; slow, for trials.",
    ),
    *memory_options,
    DEVICES.option(
        "--exchange",
        type=Choice(["auto", *registry.EXCHANGES]),
        default="auto",
        help="How domains exchange what they found.  [auto]",
    ),
    ADVANCED.option(
        "--trust-mpi",
        is_flag=True,
        help="Let exchange cuda_aware give device pointers to MPI even if MPI does not "
        "say that it takes them.",
    ),
    ADVANCED.option(
        "--mask-reduce",
        type=Choice(["blocking", "nonblocking"]),
        default="blocking",
        help="How delegate masks are reduced.  [blocking]",
    ),
    ADVANCED.option(
        "--local-all2all",
        is_flag=True,
        help="Gather vertices by device inside a rank before they are sent.",
    ),
    ADVANCED.option(
        "--uniquify", is_flag=True, help="Drop repeated vertices before they are sent."
    ),
)

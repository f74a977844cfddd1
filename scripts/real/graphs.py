"""Real graphs by name: where each comes from, and the file of edges made of it.

A file that lies in the folder already is not fetched, so that graphs of sites that a
machine cannot reach can be put there by hand, under the name of their address.
"""

from __future__ import annotations

import io
import lzma
import re
import shutil
import tarfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

from distbfs.errors import InputError

DEBIAN = "http://deb.debian.org/debian"
METIS = f"{DEBIAN}/pool/main/m/metis/metis_5.1.0.dfsg.orig.tar.xz"
NETWORKIT = "https://raw.githubusercontent.com/networkit/networkit/master/input"
SNAP = "https://snap.stanford.edu/data"
SUITESPARSE = "https://suitesparse-collection-website.herokuapp.com/MM"
AR_HEADER = 60  # bytes before a member of a Debian package
CIRCLE = 360 * 65535  # units of longitude of GSHHG
SECONDS = 60  # that a site may be silent


@dataclass(frozen=True)
class RealGraph:
    """A graph that anybody can get.

    address: of the file that is fetched
    member: of an archive, what is taken out of it
    edges: makes the file of edges of what was fetched; default: it is that file
    options: of ``distbfs convert``
    large: not measured unless it is named
    """

    what: str
    address: str
    member: str = ""
    edges: Callable[[Path, Path], None] | None = None
    options: tuple[str, ...] = ()
    large: bool = False

    @property
    def directed(self) -> bool:
        """Whether edges lead one way."""
        return "--directed" in self.options


def fetch(address: str, folder: Path) -> Path:
    """Return the fetched file of an address; InputError if it cannot be had."""
    path = folder / address.rpartition("/")[2]
    if path.exists():
        return path
    partial = path.with_name(path.name + ".partial")
    try:
        with (
            urllib.request.urlopen(address, timeout=SECONDS) as answer,
            partial.open("wb") as file,
        ):
            shutil.copyfileobj(answer, file)
    except (OSError, urllib.error.URLError) as error:
        partial.unlink(missing_ok=True)
        raise InputError(f"{address}: {error}") from None
    return partial.rename(path)


def edge_file(name: str, graph: RealGraph, folder: Path) -> Path:
    """Return the file of a graph's edges, which is fetched where it is not there."""
    fetched = fetch(graph.address, folder)
    if graph.edges is None and not graph.member:
        return fetched
    path = folder / (Path(graph.member).name if graph.member else f"{name}.txt")
    if path.exists():
        return path
    partial = path.with_name(path.name + ".partial")
    if graph.edges is not None:
        graph.edges(fetched, partial)
    else:
        extract(fetched, graph.member, partial)
    return partial.rename(path)


def extract(archive: Path, member: str, path: Path) -> None:
    """Copy a file of a tar archive, or of a Debian package, to a path."""
    data = io.BytesIO(packaged(archive)) if archive.suffix == ".deb" else None
    with tarfile.open(None if data else archive, fileobj=data) as tar:
        file = tar.extractfile(member)
        if file is None:
            raise InputError(f"{archive}: {member} is not a file")
        with file, path.open("wb") as out:
            shutil.copyfileobj(file, out)


def packaged(package: Path) -> bytes:
    """Return the archive of a Debian package's files."""
    with package.open("rb") as file:
        file.seek(len(b"!<arch>\n"))
        while len(header := file.read(AR_HEADER)) == AR_HEADER:
            size = int(header[48:58])
            if header.startswith(b"data.tar"):
                return file.read(size)
            file.seek(size + size % 2, 1)
    raise InputError(f"{package}: no data.tar in it")


def dependencies(fetched: Path, path: Path) -> None:
    """Write who depends on whom, of Debian's list of packages."""
    name = ""
    with lzma.open(fetched, "rt", encoding="utf-8") as lines, path.open("w") as out:
        for line in lines:
            key, _, value = line.partition(": ")
            if key == "Package":
                name = value.strip()
            elif key in ("Depends", "Pre-Depends", "Recommends"):
                words = {
                    re.split(r"[ (:]", x.strip())[0] for x in re.split("[,|]", value)
                }
                out.writelines(f"{name} {word}\n" for word in sorted(words))


def pointers(fetched: Path, path: Path) -> None:
    """Write the pointers between WordNet's nouns; a record: its format, in wndb(5)."""
    nouns = path.with_name("data.noun")
    extract(fetched, "./usr/share/wordnet/data.noun", nouns)
    with nouns.open(encoding="latin-1") as lines, path.open("w") as out:
        out.writelines(f"{a} {b}\n" for line in lines for a, b in noun_pointers(line))
    nouns.unlink()


def noun_pointers(line: str) -> Iterator[tuple[int, int]]:
    """Yield the pairs of a record's id and those of the nouns that it points to."""
    fields = line.partition("|")[0].split()
    if line.startswith(" ") or len(fields) < 4:
        return
    first = 4 + 2 * int(fields[3], 16)
    for k in range(int(fields[first])):
        _, target, kind, _ = fields[first + 1 + 4 * k : first + 5 + 4 * k]
        if kind == "n":
            yield int(fields[0]), int(target)


def rivers(fetched: Path, path: Path) -> None:
    """Write the lines of the world's rivers, from point to point, of GSHHG."""
    binned = path.with_name("binned_river_f.nc")
    extract(fetched, "./usr/share/gmt-gshhg/binned_river_f.nc", binned)
    with h5py.File(binned) as file:
        across = int(file["N_bins_in_360_longitude_range"][0])
        bins = file["N_segments_in_a_bin"][:]
        points = file["N_points_for_a_segment"][:].astype(np.int64)
        east = file["Relative_longitude_from_SW_corner_of_bin"][:].astype(np.uint16)
        north = file["Relative_latitude_from_SW_corner_of_bin"][:].astype(np.uint16)
    binned.unlink()
    which = np.repeat(np.arange(len(bins)), bins)  # bin of each segment
    corner = np.repeat(which, points)
    side = CIRCLE // across
    x = (corner % across * side + east) % CIRCLE
    y = corner // across * side + side - north.astype(np.int64)
    ids = y * CIRCLE + x
    last = np.cumsum(points) - 1
    inside = np.ones(len(ids), np.bool_)
    inside[last] = False
    ends = np.flatnonzero(inside)
    np.savetxt(path, np.stack([ids[ends], ids[ends + 1]], axis=1), fmt="%d")


def snap(what: str, name: str, *options: str, large: bool = False) -> RealGraph:
    """Return a graph of the SNAP collection, whose ids have gaps."""
    return RealGraph(
        what, f"{SNAP}/{name}", options=("--relabel", *options), large=large
    )


def suitesparse(what: str, name: str, *options: str) -> RealGraph:
    """Return a graph of the SuiteSparse collection."""
    address = f"{SUITESPARSE}/{name}.tar.gz"
    return RealGraph(what, address, options=options, large=True)


ONE_WAY = "--directed"
GRAPHS = {
    "copter2": RealGraph(
        "mesh of a helicopter", METIS, "metis-5.1.0/graphs/copter2.graph"
    ),
    "4elt": RealGraph("mesh of an airfoil", METIS, "metis-5.1.0/graphs/4elt.graph"),
    "mdual": RealGraph("dual of a mesh", METIS, "metis-5.1.0/graphs/mdual.graph"),
    "wing": RealGraph("mesh of a wing", f"{NETWORKIT}/wing.graph"),
    "power": RealGraph("power grid of the western US", f"{NETWORKIT}/power.graph"),
    "astro-ph": RealGraph("who wrote with whom", f"{NETWORKIT}/astro-ph.graph"),
    "mit8": RealGraph(
        "friends at a university", f"{NETWORKIT}/MIT8.edgelist", options=("--relabel",)
    ),
    "debian": RealGraph(
        "packages that need packages",
        f"{DEBIAN}/dists/bookworm/main/binary-amd64/Packages.xz",
        edges=dependencies,
        options=("--relabel", ONE_WAY),
    ),
    "wordnet": RealGraph(
        "nouns and what they point to",
        f"{DEBIAN}/pool/main/w/wordnet/wordnet-base_3.0-37_all.deb",
        edges=pointers,
        options=("--relabel", ONE_WAY),
    ),
    "rivers": RealGraph(
        "the world's rivers, 2.5 M points",
        f"{DEBIAN}/pool/main/g/gmt-gshhg/gmt-gshhg-full_2.3.7-6_all.deb",
        edges=rivers,
        options=("--relabel",),
    ),
    "wiki-vote": snap("votes of Wikipedia", "wiki-Vote.txt.gz", ONE_WAY),
    "email-enron": snap("who wrote to whom", "email-Enron.txt.gz"),
    "cit-hepph": snap("citations of physics", "cit-HepPh.txt.gz", ONE_WAY),
    "cit-patents": snap(
        "citations of patents", "cit-Patents.txt.gz", ONE_WAY, large=True
    ),
    "web-google": snap("links of web pages", "web-Google.txt.gz", ONE_WAY, large=True),
    "road-ca": snap("roads of California", "roadNet-CA.txt.gz", large=True),
    "livejournal": snap(
        "who follows whom", "soc-LiveJournal1.txt.gz", ONE_WAY, large=True
    ),
    "gap-road": suitesparse("roads of the US", "GAP/GAP-road", ONE_WAY),
    "gap-twitter": suitesparse("who follows whom", "GAP/GAP-twitter", ONE_WAY),
    "gap-web": suitesparse("links of web pages", "GAP/GAP-web", ONE_WAY),
    "gap-kron": suitesparse("Kronecker, for comparison", "GAP/GAP-kron"),
    "gap-urand": suitesparse("uniform, for comparison", "GAP/GAP-urand"),
}

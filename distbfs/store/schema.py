"""Names, dtypes and shapes of a graph store, and its manifest.

A store is a folder of ``part-00000.h5`` …, ``manifest.h5`` and, if the vertices had
other ids in their input file, ``ids.h5``. Every dataset is one-dimensional and holds
little-endian integers, in chunks of about 1 MiB with fletcher32 or, if it is empty, in
contiguous layout without filters. The manifest is one JSON text in the uint8 dataset
``/manifest``; an attribute of every file holds its format version.
"""

from __future__ import annotations

import json
import operator
import re
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta, Struct

from distbfs import __version__
from distbfs.errors import StoreError, UsageError
from distbfs.partition.layout import Layout
from distbfs.partition.part import INTO, edges_in, names_of, part_table
from distbfs.types import SUBGRAPHS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from distbfs.partition.part import Part
    from distbfs.types import Array

FORMAT_VERSION = 1
MANIFEST_NAME = "manifest.h5"
MANIFEST_DATASET = "manifest"
IDS_NAME = "ids.h5"
MANIFEST_LIMIT = 64 << 20
VERSION_ATTRIBUTE = "format_version"
CHUNK_BYTES = 1 << 20
SLICE_BYTES = 64 << 20
LARGEST = (1 << 63) - 1

COUNTS = ("n", "tuples", "threshold", "delegates", "order_block", "loops", "repeats")
JSON_FIELDS = ("source", "relabel", "statistics")
DATASETS = tuple(part_table(0, 0, dict.fromkeys(SUBGRAPHS, 0), parts=1, nd_sources=0))
ATTRIBUTE = re.compile(r"(nn|nd|dn|dd|incoming(_d[nd]|_nd)?)/attribute_(\w{1,200})")
KINDS = {  # of attributes of edges
    "int64": "<i8",
    "float64": "<f8",
    "float32": "<f4",
    "float16": "<f2",
    "text": "<i4",
}
ROW_ARRAYS = ("offsets", "columns")
OPTIONAL: dict[str, Any] = {"ids": None, "first_id": 0, "attributes": {}}
IDS_DATASETS = {"integer": ("ids",), "text": ("offsets", "text")}
PART_FILE = re.compile(r"part-\d{5,}\.h5")

Count: TypeAlias = Annotated[int, Meta(ge=0, le=LARGEST)]
Digest: TypeAlias = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
Frame: TypeAlias = Annotated[str, Meta(pattern="^([0-9a-f]{32})?$")]


def attribute_names(names: Iterable[str], subgraphs: Iterable[str]) -> list[str]:
    """Return the names of datasets with attributes, in the group of each subgraph."""
    return [f"{part}/attribute_{name}" for name in names for part in subgraphs]


def part_name(index: int) -> str:
    """Return the file name of a part."""
    return f"part-{index:05d}.h5"


def chunk_elements(size: int, itemsize: int) -> int:
    """Return the chunk length of a dataset of ``size`` elements."""
    return min(size, CHUNK_BYTES // itemsize)


@dataclass(frozen=True)
class DatasetSpec:
    """The allowed dtypes of a dataset, and the bounds of its number of elements.

    The bounds are equal if the manifest fixes the shape.
    """

    dtypes: tuple[str, ...]
    least: int
    most: int

    @classmethod
    def of(cls, size: int, *dtypes: str) -> DatasetSpec:
        """Return the specification of a dataset with exactly ``size`` elements."""
        return cls(dtypes, size, size)


class Strict(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A JSON object without unknown keys; ``msgspec.convert`` checks its values."""


class PartRecord(Strict, frozen=True):
    """The manifest's record of one part.

    index: index of the part; active: number of its normal vertices with edges
    edges: number of stored directed edges by subgraph (nn, nd, dn, dd); besides, of a
    directed graph in several parts, those of nn of edges in (incoming)
    digests: dataset name -> xxh3_128 (hex) of its raw little-endian bytes
    array_bytes: bytes of all datasets in memory; file_bytes: size of the file
    frame: xxh3_128 (hex) of the bytes of the file that are not values of datasets, ""
    in stores that were written without this digest
    """

    index: Count
    active: Count
    edges: dict[str, Count]
    digests: dict[str, Digest]
    array_bytes: Count
    file_bytes: Count
    frame: Frame = ""

    def __post_init__(self) -> None:
        where = f"record of part {self.index}"
        counted = [*SUBGRAPHS, *[INTO["nn"]] * (INTO["nn"] in self.edges)]
        check_keys(f"{where}: edges", self.edges, counted)
        into = self.subgraphs[len(SUBGRAPHS) :]
        datasets = [*DATASETS, *(f"{x}/{y}" for x in into for y in ROW_ARRAYS)]
        datasets += attribute_names(self.attributes, self.subgraphs)
        check_keys(f"{where}: digests", self.digests, datasets)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes of edges, in file order."""
        matches = map(ATTRIBUTE.fullmatch, self.digests)
        return tuple(dict.fromkeys(match[3] for match in matches if match))

    @property
    def subgraphs(self) -> tuple[str, ...]:
        """The names of the subgraphs, see ``names_of``."""
        into = (name for name in INTO.values() if f"{name}/offsets" in self.digests)
        return (*SUBGRAPHS, *into)

    @property
    def directed(self) -> bool:
        """Whether the part has edges out and in."""
        return INTO["nn"] in self.subgraphs


class IdsRecord(Strict, frozen=True):
    """The manifest's record of ``ids.h5``, the vertices' ids in their file.

    kind: "integer" or "text"; count: number of vertices
    digests, array_bytes, file_bytes, frame: as in ``PartRecord``
    """

    kind: Annotated[str, Meta(pattern="^(integer|text)$")]
    count: Count
    digests: dict[str, Digest]
    array_bytes: Count
    file_bytes: Count
    frame: Frame = ""

    def __post_init__(self) -> None:
        check_keys("ids: digests", self.digests, IDS_DATASETS[self.kind])


class AttributeFacts(Strict, frozen=True):
    """The manifest's description of an attribute of edges; words: those of a text."""

    kind: str
    words: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS or (self.words is None) == (self.kind == "text"):
            raise StoreError(
                f"an attribute of kind {self.kind!r:.60}; allowed: "
                f"{', '.join(KINDS)}, which has words"
            )


class Manifest(Strict, frozen=True, kw_only=True):
    """The contents of a store; totals over all parts are derived from ``records``.

    n: number of vertices; tuples: number of input tuples; threshold: TH; delegates:
    number of delegates, d
    source: JSON, the description of the tuples, with the key "family"
    relabel: JSON, {"method": "none"} or {"method": "hash", "seed": …}
    order_block: number of local ids in each block that is sorted by degree
    loops, repeats: numbers of input tuples that were dropped
    records: one for each part, in order
    statistics: JSON, degree statistics
    ids: record of the vertices' ids in the input file, None if the store keeps none
    first_id: the first vertex's id in the input file, if ids are consecutive: 0 or 1
    attributes: attributes of edges by name
    """

    format_version: int = FORMAT_VERSION
    n: Count
    tuples: Count
    threshold: Count
    delegates: Count
    order_block: Annotated[int, Meta(ge=1, le=LARGEST)]
    loops: Count
    repeats: Count
    source: dict[str, Any]
    relabel: dict[str, Any]
    statistics: dict[str, Any] = {}
    created_by: str = f"distbfs {__version__}"
    ids: IdsRecord | None = None
    first_id: Annotated[int, Meta(ge=0, le=1)] = 0
    attributes: dict[str, AttributeFacts] = {}
    records: Annotated[tuple[PartRecord, ...], Meta(min_length=1)]

    def __post_init__(self) -> None:
        if self.format_version != FORMAT_VERSION:
            raise StoreError(wrong_version(self.format_version))
        self._check_json()
        try:
            layout = Layout(self.n, self.parts)
        except UsageError as error:
            raise StoreError(str(error)) from error
        if self.delegates > min(self.n, 1 << 32):
            raise StoreError(f"{self.delegates} delegates, but {self.n} vertices")
        kept = self.tuples - self.loops - self.repeats
        if self.m // (1 if self.directed else 2) != kept:
            raise StoreError(
                f"{self.m} edges do not fit {self.tuples} tuples, {self.loops} loops "
                f"and {self.repeats} repeats"
            )
        self._check_records(layout)

    def _check_records(self, layout: Layout) -> None:
        if self.ids is not None and self.ids.count != self.n:
            raise StoreError(f"{self.ids.count} ids for {self.n} vertices")
        if self.ids is not None and self.first_id:
            raise StoreError("first_id is 1; allowed: 0, as there are ids")
        first = self.records[0]
        names = names_of(directed=self.directed, delegates=self.delegates)
        into = sum(edges_in(record.edges, INTO["nn"]) for record in self.records)
        if into != self.edges["nn"]:
            raise StoreError(f"{into} nn edges in, but {self.edges['nn']} out")
        for index, record in enumerate(self.records):
            if record.subgraphs != names:
                raise StoreError(f"part {index} does not have {', '.join(names)}")
            if record.index != index:
                raise StoreError(f"record {index} is of part {record.index}")
            if set(record.attributes) != set(self.attributes):
                raise StoreError(f"part {index} has other attributes")
            if record.active > layout.local_count(index):
                raise StoreError(f"part {index} has more active vertices than vertices")
            for name in ("delegates", "delegate_degrees"):
                if record.digests[name] != first.digests[name]:
                    raise StoreError(f"{name} of parts 0 and {index} differ")

    def _check_json(self) -> None:
        if not isinstance(self.source.get("family"), str):
            raise StoreError('source does not name its "family"')
        method = self.relabel.get("method")
        if method not in ("none", "hash"):
            raise StoreError(f"relabel method is '{method}'; allowed: none, hash")
        seed = self.relabel.get("seed")
        if method == "hash" and type(seed) is not int:
            raise StoreError(f"relabel seed is {seed!r:.60}; allowed: a whole number")
        for name in self.attributes:
            if not name.isidentifier():
                raise StoreError(f"attribute {name!r:.60} is not an identifier")

    @property
    def parts(self) -> int:
        """Number of parts."""
        return len(self.records)

    @property
    def directed(self) -> bool:
        """Whether edges lead one way only."""
        return any(record.directed for record in self.records)

    @property
    def layout(self) -> Layout:
        """Ownership of vertices."""
        return Layout(self.n, self.parts)

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of each attribute of edges, by name."""
        return {name: facts.kind for name, facts in self.attributes.items()}

    def specs(self, index: int) -> dict[str, DatasetSpec]:
        """Return the specification of each dataset of a part."""
        record = self.records[index]
        return part_specs(
            self.layout,
            index,
            self.delegates,
            record.edges,
            directed=record.directed,
            kinds=self.kinds,
        )

    def words_of(self, name: str) -> tuple[str, ...] | None:
        """Return the words of an attribute of edges, None if it is not text."""
        return self.attributes[name].words

    @property
    def edges(self) -> dict[str, int]:
        """Number of stored edges of all parts, by subgraph."""
        return {x: sum(record.edges[x] for record in self.records) for x in SUBGRAPHS}

    @property
    def m(self) -> int:
        """Number of stored directed edges of all parts."""
        return sum(self.edges.values())

    @property
    def totals(self) -> dict[str, int]:
        """Counts that are derived from the records, by name."""
        return {**self.edges, "m": self.m, "parts": self.parts}

    def summary(self) -> dict[str, Any]:
        """Return everything except the records as JSON values."""
        out: dict[str, Any] = {"format_version": self.format_version}
        out |= {name: getattr(self, name) for name in COUNTS} | self.totals
        out |= {name: getattr(self, name) for name in JSON_FIELDS}
        out["created_by"] = self.created_by
        others = {name: getattr(self, name) for name in ("ids", "first_id")}
        others["attributes"] = self.attributes
        return out | msgspec.to_builtins({k: x for k, x in others.items() if x})

    def to_json(self) -> str:
        """Return the JSON text of ``manifest.h5``."""
        values = self.summary() | {"records": msgspec.to_builtins(self.records)}
        return json.dumps(values, allow_nan=False, indent=1, default=operator.index)

    @classmethod
    def from_json(cls, text: bytes) -> Manifest:
        """Parse a manifest; raise StoreError for an invalid one."""
        try:
            values = msgspec.json.decode(text, type=dict[str, Any])
            totals = (*SUBGRAPHS, "m", "parts")
            keys = (*cls.__struct_fields__, *totals)
            check_keys("the manifest", OPTIONAL | values, keys)
            stated = {name: values.pop(name) for name in totals}
            manifest = msgspec.convert(values, cls)
        except msgspec.ValidationError as error:
            raise StoreError(f"the manifest is wrong: {error}") from error
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise StoreError(f"the manifest is not valid JSON: {error}") from error
        for name, total in manifest.totals.items():
            if stated[name] != total:
                raise StoreError(
                    f"{name} is {stated[name]!r:.60}, but the records of the parts "
                    f"give {total}"
                )
        return manifest


def part_specs(
    layout: Layout,
    index: int,
    d: int,
    edges: Mapping[str, int],
    *,
    directed: bool = False,
    kinds: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, DatasetSpec]:
    """Return the specification of each dataset of a part.

    edges: as in ``PartRecord``; kinds: kind of each attribute of edges, by name
    """
    local = layout.local_count(index)
    table = part_table(
        local, d, edges, parts=layout.parts, nd_sources=local, directed=directed
    )
    specs = {
        name: DatasetSpec.of(plan.count, np.dtype(plan.dtype).newbyteorder("<").str)
        for name, plan in table.items()
    }
    for rows in (name for name in table if name.endswith("/offsets")):
        specs[rows] = replace(specs[rows], dtypes=("<u4", "<u8"))
    specs["nd_sources"] = replace(specs["nd_sources"], least=0)
    names = names_of(directed=directed, delegates=d)
    for attribute, kind in kinds.items():
        for subgraph, name in zip(
            names, attribute_names([attribute], names), strict=True
        ):
            specs[name] = DatasetSpec.of(edges_in(edges, subgraph), KINDS[kind])
    return specs


def part_attributes(
    layout: Layout, index: int, threshold: int, active: int
) -> dict[str, int]:
    """Return the attributes of a part's file, with their values."""
    return {
        VERSION_ATTRIBUTE: FORMAT_VERSION,
        "index": index,
        "parts": layout.parts,
        "n": layout.n,
        "threshold": threshold,
        "active": active,
    }


def ids_specs(kind: str, count: int) -> dict[str, DatasetSpec]:
    """Return the specification of each dataset of ``ids.h5``; see ``IdsRecord``."""
    if kind == "integer":
        return {"ids": DatasetSpec.of(count, "<i8")}
    offsets = DatasetSpec.of(count + 1, "<i8")
    return {"offsets": offsets, "text": DatasetSpec(("<u1",), 0, LARGEST)}


def ids_attributes(count: int) -> dict[str, int]:
    """Return the attributes of ``ids.h5``, with their values."""
    return {VERSION_ATTRIBUTE: FORMAT_VERSION, "n": count}


def part_arrays(part: Part) -> dict[str, Array]:
    """Return the arrays of a part by dataset name, in the order of the file.

    Their dtypes and shapes are those of ``part_specs``.
    """
    rows = {
        f"{name}/{array}": getattr(graph, array)
        for name, graph in part.subgraphs.items()
        for array in ROW_ARRAYS
    }
    arrays = {x: rows[x] if x in rows else getattr(part, x) for x in DATASETS}
    arrays |= rows
    for attribute, held in part.attributes.items():
        names = attribute_names([attribute], part.subgraphs)
        arrays |= zip(names, (held.values[x] for x in part.subgraphs), strict=True)
    return arrays


def attributes_of(part: Part) -> dict[str, AttributeFacts]:
    """Return the manifest's description of the attributes of edges."""
    return {
        name: AttributeFacts(x.kind, x.words) for name, x in part.attributes.items()
    }


def part_edges(part: Part) -> dict[str, int]:
    """Return the numbers of edges of a part, as in ``PartRecord``."""
    edges = {name: rows.edges for name, rows in part.out.items()}
    several = part.directed and part.layout.parts > 1
    return edges | ({INTO["nn"]: part.pulled.edges} if several else {})


def wrong_version(version: object) -> str:
    """Return the message for a file of another format version."""
    return f"format version is {version}; this distbfs reads version {FORMAT_VERSION}"


def check_keys(name: str, value: Mapping[str, Any], keys: Sequence[str]) -> None:
    """Raise StoreError unless ``value`` has exactly ``keys``."""
    for key in value:
        if key not in keys:
            raise StoreError(f"{name} has the unknown key '{key:.60}'")
    for key in keys:
        if key not in value:
            raise StoreError(f"{name} lacks the key '{key}'")

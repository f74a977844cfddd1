"""Names, dtypes and shapes of a graph store, and its manifest.

A store is a folder of ``part-00000.h5`` …, ``manifest.h5`` and, if the vertices had
other ids in their input file, ``ids.h5``. Every dataset is one-dimensional and holds
little-endian integers, in chunks of about 1 MiB with fletcher32 or, if it is empty, in
contiguous layout without filters. The manifest is one JSON text in the uint8 dataset
``/manifest``; an attribute of every file holds its format version.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from distbfs import __version__
from distbfs.errors import StoreError, UsageError
from distbfs.partition.layout import Layout
from distbfs.partition.part import INTO, edges_in, names_of, part_table
from distbfs.types import SUBGRAPHS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from typing_extensions import Self

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
FRAME = "frame"  # of a record, missing in older stores
IDS_DATASETS = {"integer": ("ids",), "text": ("offsets", "text")}
PART_FILE = re.compile(r"part-\d{5,}\.h5")
DIGEST = re.compile(r"[0-9a-f]{32}")


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


class FileRecord:
    """The manifest's record of one file; subclasses are dataclasses."""

    title: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def as_dict(self) -> dict[str, Any]:
        """Return the record as JSON values, without its frame if that is empty."""
        values = asdict(self)
        if not values[FRAME]:
            del values[FRAME]
        return values

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        """Return the record from JSON values; raise StoreError for invalid ones."""
        keys = [item.name for item in fields(cls)]
        if isinstance(values, dict) and FRAME not in values:
            keys.remove(FRAME)
        check_mapping(cls.title, values, keys)
        return cls(**values)


@dataclass(frozen=True)
class PartRecord(FileRecord):
    """The manifest's record of one part.

    index: index of the part; active: number of its normal vertices with edges
    edges: number of stored directed edges by subgraph (nn, nd, dn, dd); besides, of a
    directed graph in several parts, those of nn of edges in (incoming)
    digests: dataset name -> xxh3_128 (hex) of its raw little-endian bytes
    array_bytes: bytes of all datasets in memory; file_bytes: size of the file
    frame: xxh3_128 (hex) of the bytes of the file that are not values of datasets, ""
    in stores that were written without this digest
    """

    title = "record of a part"

    index: int
    active: int
    edges: dict[str, int]
    digests: dict[str, str]
    array_bytes: int
    file_bytes: int
    frame: str = ""

    def __post_init__(self) -> None:
        where = f"record of part {self.index}"
        for name in ("index", "active", "array_bytes", "file_bytes"):
            count = check_count(f"{where}: {name}", getattr(self, name))
            object.__setattr__(self, name, count)
        counted = [*SUBGRAPHS]
        if isinstance(self.edges, dict) and INTO["nn"] in self.edges:
            counted.append(INTO["nn"])
        check_mapping(f"{where}: edges", self.edges, counted)
        edges = {
            name: check_count(f"{where}: edges of {name}", self.edges[name])
            for name in counted
        }
        object.__setattr__(self, "edges", edges)
        datasets = [*DATASETS]
        if isinstance(self.digests, dict):
            into = self.subgraphs[len(SUBGRAPHS) :]
            datasets += [f"{x}/{y}" for x in into for y in ("offsets", "columns")]
            datasets += attribute_names(self.attributes, self.subgraphs)
        check_digests(f"{where}: digests", self.digests, datasets)
        check_frame(where, self.frame)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes of edges, in file order."""
        matches = (ATTRIBUTE.fullmatch(str(name)) for name in self.digests)
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


@dataclass(frozen=True)
class IdsRecord(FileRecord):
    """The manifest's record of ``ids.h5``, the vertices' ids in their file.

    kind: "integer" or "text"; count: number of vertices
    digests, array_bytes, file_bytes, frame: as in ``PartRecord``
    """

    title = "record of the ids"

    kind: str
    count: int
    digests: dict[str, str]
    array_bytes: int
    file_bytes: int
    frame: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in IDS_DATASETS:
            allowed = ", ".join(IDS_DATASETS)
            raise StoreError(f"ids are of kind {self.kind!r:.60}; allowed: {allowed}")
        for name in ("count", "array_bytes", "file_bytes"):
            check_count(f"ids: {name}", getattr(self, name))
        check_digests("ids: digests", self.digests, IDS_DATASETS[self.kind])
        check_frame("ids", self.frame)

    def specs(self) -> dict[str, DatasetSpec]:
        """Return the specification of each dataset."""
        if self.kind == "integer":
            return {"ids": DatasetSpec.of(self.count, "<i8")}
        offsets = DatasetSpec.of(self.count + 1, "<i8")
        return {"offsets": offsets, "text": DatasetSpec(("<u1",), 0, LARGEST)}


@dataclass(frozen=True)
class Manifest:
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
    attributes: attributes of edges, name -> {"kind": …}, for text {"kind": "text",
    "words": […]}
    """

    n: int
    tuples: int
    threshold: int
    delegates: int
    source: dict[str, Any]
    relabel: dict[str, Any]
    order_block: int
    loops: int
    repeats: int
    records: tuple[PartRecord, ...]
    statistics: dict[str, Any] = field(default_factory=dict)
    created_by: str = f"distbfs {__version__}"
    format_version: int = FORMAT_VERSION
    ids: IdsRecord | None = None
    first_id: int = 0
    attributes: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.format_version != FORMAT_VERSION:
            raise StoreError(wrong_version(self.format_version))
        for name in COUNTS:
            object.__setattr__(self, name, check_count(name, getattr(self, name)))
        check_count("first_id", self.first_id, 0 if self.ids is not None else 1)
        self._check_json()
        try:
            layout = Layout(self.n, self.parts)
        except UsageError as error:
            raise StoreError(str(error)) from error
        if self.delegates > min(self.n, 1 << 32):
            raise StoreError(f"{self.delegates} delegates, but {self.n} vertices")
        if self.order_block < 1:
            raise StoreError("order_block is 0; allowed: 1 or more")
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
        first = self.records[0]
        self._check_attributes()
        names = names_of(directed=self.directed, delegates=self.delegates)
        into = sum(edges_in(record.edges, INTO["nn"]) for record in self.records)
        if into != self.edges["nn"]:
            raise StoreError(f"{into} nn edges in, but {self.edges['nn']} out")
        for index, record in enumerate(self.records):
            if record.subgraphs != names:
                raise StoreError(f"part {index} does not have {', '.join(names)}")
            if record.index != index:
                raise StoreError(f"record {index} is of part {record.index}")
            if record.active > layout.local_count(index):
                raise StoreError(f"part {index} has more active vertices than vertices")
            for name in ("delegates", "delegate_degrees"):
                if record.digests[name] != first.digests[name]:
                    raise StoreError(f"{name} of parts 0 and {index} differ")

    def _check_attributes(self) -> None:
        if not isinstance(self.attributes, dict):
            raise StoreError("attributes is not a JSON object")
        for name, facts in self.attributes.items():
            where = f"attribute {name:.40}"
            kind = facts.get("kind") if isinstance(facts, dict) else None
            if kind not in KINDS or not name.isidentifier():
                raise StoreError(f"{where} has no kind; allowed: {', '.join(KINDS)}")
            check_mapping(where, facts, ["kind", *(["words"] * (kind == "text"))])
            words = facts.get("words", [])
            if not isinstance(words, list) or not all(
                isinstance(word, str) for word in words
            ):
                raise StoreError(f"{where}: words is not a list of text")
        for record in self.records:
            if set(record.attributes) != set(self.attributes):
                raise StoreError(f"part {record.index} has other attributes")

    def _check_json(self) -> None:
        for name in JSON_FIELDS:
            value = getattr(self, name)
            if not isinstance(value, dict):
                raise StoreError(f"{name} is not a JSON object")
            try:
                json.dumps(value, allow_nan=False)
            except (TypeError, ValueError, RecursionError) as error:
                raise StoreError(f"{name} does not fit JSON: {error}") from error
        if not isinstance(self.created_by, str):
            raise StoreError("created_by is not a string")
        if not isinstance(self.source.get("family"), str):
            raise StoreError('source does not name its "family"')
        method = self.relabel.get("method")
        if method not in ("none", "hash"):
            raise StoreError(f"relabel method is '{method}'; allowed: none, hash")
        seed = self.relabel.get("seed")
        if method == "hash" and type(seed) is not int:
            raise StoreError(f"relabel seed is {seed!r:.60}; allowed: a whole number")

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
        return {name: facts["kind"] for name, facts in self.attributes.items()}

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
        facts = self.attributes[name]
        return tuple(facts["words"]) if "words" in facts else None

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
        if self.ids is not None:
            out["ids"] = self.ids.as_dict()
        if self.first_id:
            out["first_id"] = self.first_id
        if self.attributes:
            out["attributes"] = self.attributes
        return out

    def to_json(self) -> str:
        """Return the JSON text of ``manifest.h5``."""
        values = self.summary()
        values["records"] = [record.as_dict() for record in self.records]
        return json.dumps(values, allow_nan=False, indent=1)

    @classmethod
    def from_json(cls, text: bytes) -> Manifest:
        """Parse a manifest; raise StoreError for an invalid one."""
        try:
            values = json.loads(text, parse_constant=refuse_constant)
        except (ValueError, RecursionError) as error:
            raise StoreError(f"the manifest is not valid JSON: {error}") from error
        others: dict[str, Any] = {"ids": None, "first_id": 0, "attributes": {}}
        if isinstance(values, dict):
            others = {name: values.pop(name, x) for name, x in others.items()}
        own = (*COUNTS, *JSON_FIELDS, "created_by", "format_version", "records")
        check_mapping("the manifest", values, (*own, *SUBGRAPHS, "m", "parts"))
        if not isinstance(values["records"], list) or not values["records"]:
            raise StoreError("records is not a list of at least one part")
        others["records"] = tuple(map(PartRecord.from_dict, values["records"]))
        if others["ids"] is not None:
            others["ids"] = IdsRecord.from_dict(others["ids"])
        manifest = cls(**{name: values[name] for name in own} | others)
        for name, total in manifest.totals.items():
            if check_count(name, values[name]) != total:
                raise StoreError(
                    f"{name} is {values[name]}, but the records of the parts give "
                    f"{total}"
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
        for array in ("offsets", "columns")
    }
    arrays = {x: rows[x] if x in rows else getattr(part, x) for x in DATASETS}
    arrays |= rows
    for attribute, held in part.attributes.items():
        names = attribute_names([attribute], part.subgraphs)
        arrays |= zip(names, (held.values[x] for x in part.subgraphs), strict=True)
    return arrays


def attributes_of(part: Part) -> dict[str, Any]:
    """Return the manifest's description of the attributes of edges."""
    return {
        name: {"kind": x.kind} | ({} if x.words is None else {"words": list(x.words)})
        for name, x in part.attributes.items()
    }


def part_edges(part: Part) -> dict[str, int]:
    """Return the numbers of edges of a part, as in ``PartRecord``."""
    edges = {name: rows.edges for name, rows in part.out.items()}
    several = part.directed and part.layout.parts > 1
    return edges | ({INTO["nn"]: part.pulled.edges} if several else {})


def wrong_version(version: object) -> str:
    """Return the message for a file of another format version."""
    return f"format version is {version}; this distbfs reads version {FORMAT_VERSION}"


def refuse_constant(name: str) -> None:
    """Raise ValueError for NaN and Infinity, which are not JSON."""
    raise ValueError(f"{name} is not allowed")


def check_count(name: str, value: object, most: int = LARGEST) -> int:
    """Return an integer from 0 to ``most``; raise StoreError for other values."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not 0 <= int(value) <= most:  # type: ignore[call-overload]
        raise StoreError(f"{name} is {value!r:.60}; allowed: 0 to {most}")
    return int(value)  # type: ignore[call-overload]


def check_digests(name: str, digests: Any, datasets: Sequence[str]) -> None:
    """Raise StoreError unless there is one digest for each dataset."""
    check_mapping(name, digests, datasets)
    for dataset, digest in digests.items():
        if not isinstance(digest, str) or not DIGEST.fullmatch(digest):
            raise StoreError(f"{name}: {dataset} has no digest of 32 hex digits")


def check_frame(name: str, digest: object) -> None:
    """Raise StoreError unless a frame is a digest, or "" for none."""
    if digest != "" and not (isinstance(digest, str) and DIGEST.fullmatch(digest)):
        raise StoreError(f"{name}: frame is not 32 hex digits")


def check_mapping(name: str, value: Any, keys: Sequence[str]) -> None:
    """Raise StoreError unless ``value`` is a dictionary with exactly ``keys``."""
    if not isinstance(value, dict):
        raise StoreError(f"{name} is not a JSON object")
    mapping: Mapping[str, Any] = value
    for key in mapping:
        if key not in keys:
            raise StoreError(f"{name} has the unknown key '{key:.60}'")
    for key in keys:
        if key not in mapping:
            raise StoreError(f"{name} lacks the key '{key}'")

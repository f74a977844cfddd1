"""Draws the pictures of the README: ``python docs/pictures/readme.py`` writes them.

Each function of PICTURES returns one picture as SVG, in black, white and greys, and is
written to NAME.svg beside this file; ``tests/docs`` compares the files with them.
"""

from __future__ import annotations

import json
import math
from typing import Any

from svg import DARK, FOLDER, MIDDLE, Picture, write

RESULTS = FOLDER.parents[1] / "scripts" / "results"


def how_it_works() -> str:
    """Draw the way from edges to levels, and what two parts exchange at a level."""
    picture = Picture(760, 390, "How distbfs searches a graph")
    steps = (
        "edges\nfile, arrays,\ngenerator",
        "build\nboth directions,\nno repeats",
        "parts\nin memory,\nor in a store",
        "search\npush or pull,\nlevel by level",
        "results\nlevel and parent\nof each vertex",
    )
    for i, step in enumerate(steps):
        picture.box(12 + 152 * i, 12, 128, 72, step)
        if i:
            picture.arrow([(152 * i - 12, 48), (152 * i + 10, 48)])
    picture.line([(468, 84), (12, 118)], dashes="4 4", stroke_width=1)
    picture.line([(596, 84), (748, 118)], dashes="4 4", stroke_width=1)
    picture.box(12, 118, 736, 260, fill="white")
    picture.text(380, 140, "one level of a search, between two parts of the graph")
    for x, part, owned in ((28, 0, (0, 2, 4, 6)), (532, 1, (1, 3, 5, 7))):
        picture.box(x, 156, 200, 206)
        picture.text(x + 100, 176, f"part {part}: GPU or CPU cores")
        picture.text(x + 100, 200, "delegates: copied to all")
        for i in range(4):
            picture.add(
                "rect", x=x + 22 + 42 * i, y=210, width=28, height=28, stroke=DARK,
                fill=DARK if i in {0, 2} else "white",
            )  # fmt: skip
        picture.text(x + 100, 276, "normal: one owner each")
        for i, vertex in enumerate(owned):
            shaded = MIDDLE if vertex in {2, 5} else "white"
            picture.add(
                "circle", cx=x + 36 + 42 * i, cy=308, r=15, fill=shaded, stroke=DARK
            )
            picture.text(x + 36 + 42 * i, 312.5, str(vertex))
        picture.text(x + 100, 350, "edges: kept at one end")
    picture.arrow([(232, 224), (528, 224)], both=True)
    picture.text(
        380, 196, "all parts exchange one bit for each delegate:\nreached, or not"
    )
    picture.arrow([(232, 308), (528, 308)], both=True)
    picture.text(
        380, 280, "a part tells the owner of a normal vertex\nthat an edge leads there"
    )
    picture.text(
        380, 340, "Delegates are the vertices of high degree,\nif the graph has such."
    )
    return picture.svg()


def result(name: str) -> dict[str, Any]:
    """Return what a result file holds."""
    values: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    return values


def rates() -> dict[str, dict[int, float]]:
    """Return GTEPS by scale of Kronecker graphs, measured by distbfs and its peers."""
    series: dict[str, dict[int, float]] = {"four H200": {}, "one H200": {}}
    for row in result("bench_resident")["rows"]:
        if row["mode"] == "resident" and row["devices"] == 4 and row["graph"] > "22":
            series["four H200"][int(row["graph"])] = row["gteps"]
    for row in result("bench_gpu")["rows"]:
        for variant in row["variants"]:
            kind = (variant["method"], variant["result"])
            if row["row"].startswith("kron") and kind == ("fast", "ids"):
                scale = row["source"]["scale"]
                series["one H200"][scale] = variant["harmonic_mean_GTEPS"]
    largest = result("graph500_30")
    series["one H200"][largest["SCALE"]] = largest["harmonic_mean_TEPS"] / 1e9
    for path in sorted(RESULTS.glob("compare_peers_*.json")):
        values = result(path.stem)
        scale = values["graph"]["source"]["scale"]
        for engine in values["engines"]:
            name = {"openmp": "one core"}.get(engine["engine"], engine["engine"])
            series.setdefault(name, {})[scale] = engine["harmonic_mean_GTEPS"]
    return series


def rates_beside_peers() -> str:
    """Draw the GTEPS of distbfs and of libraries that one can install, over scales."""
    picture = Picture(760, 400, "Search rates on Kronecker graphs")
    left, right, top, bottom = 84, 600, 24, 348

    def place(scale: float, gteps: float) -> tuple[float, float]:
        power = (math.log10(gteps) + 4) / 8
        return left + (scale - 16) / 14 * (right - left), bottom - power * (
            bottom - top
        )

    for power in range(-4, 5):
        y = place(16, 10.0**power)[1]
        picture.line([(left, y), (right, y)], stroke=MIDDLE, stroke_width=0.7)
        label = f"{10.0**power:,.0f}" if power >= 0 else f"{10.0**power:.4g}"
        picture.text(left - 8, y + 4, label.replace("1e-04", "0.0001"), "end")
    for scale in range(16, 31, 2):
        picture.text(place(scale, 1)[0], bottom + 20, str(scale))
    picture.text(
        (left + right) / 2, bottom + 42, "scale: 2^scale vertices, 16 x 2^scale edges"
    )
    picture.text(left, 14, "billion edges a second (GTEPS)", "start")
    for name, values in rates().items():
        ours = name in {"four H200", "one H200", "one core"}
        points = [place(*pair) for pair in sorted(values.items())]
        look = {"stroke_width": 2.5} if ours else {"dashes": "5 4"}
        picture.line(points, **look)
        for x, y in points:
            picture.add(
                "circle", cx=f"{x:g}", cy=f"{y:g}", r=4, fill=DARK if ours else MIDDLE
            )
        x, y = points[-1]
        label = f"distbfs, {name}" if ours else LIBRARIES[name]
        weight = {"font_weight": "bold"} if ours else {}
        picture.text(x + 10, y + LABEL_SHIFT.get(name, 4), label, "start", **weight)
    return picture.svg()


LIBRARIES = {
    "igraph": "igraph",
    "networkit": "NetworKit",
    "networkx": "NetworkX",
    "scipy": "SciPy",
}
LABEL_SHIFT = {"igraph": 4, "networkit": 19, "one H200": 14, "four H200": -6}
PICTURES = {"how_it_works": how_it_works, "rates": rates_beside_peers}

if __name__ == "__main__":
    write({name: draw() for name, draw in PICTURES.items()})

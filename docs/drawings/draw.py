"""Write the drawings of the pages: ``python docs/drawings/draw.py``.

Plain SVG, in black and grey, the same bytes at every run; ``tests/docs`` checks that
the files beside this one are what it writes.
"""

from __future__ import annotations

import math
from html import escape
from pathlib import Path

BLACK, DARK, GREY, LIGHT, WHITE = "#111111", "#666666", "#bbbbbb", "#eeeeee", "#ffffff"
FONT = "font-family='DejaVu Sans, Verdana, sans-serif'"
Point = tuple[float, float]


class Drawing:
    """Shapes and text in the order in which they are drawn, on a white ground."""

    def __init__(self, width: int, height: int, about: str) -> None:
        size = f"width='{width}' height='{height}'"
        self._parts = [
            f"<svg xmlns='http://www.w3.org/2000/svg' {size} role='img'",
            f"  viewBox='0 0 {width} {height}' {FONT}>",
            f"<title>{escape(about)}</title>",
            "<defs><marker id='tip' viewBox='0 0 8 8' refX='7' refY='4' orient='auto'",
            "  markerUnits='userSpaceOnUse' markerWidth='10' markerHeight='10'>",
            f"<path d='M0,0 L8,4 L0,8 z' fill='{BLACK}'/></marker></defs>",
            f"<rect {size} fill='{WHITE}'/>",
        ]

    def box(
        self, x: float, y: float, width: float, height: float, **style: str
    ) -> None:
        """Draw a rectangle with round corners."""
        fill, dash = style.get("fill", WHITE), style.get("dash", "none")
        self._parts.append(
            f"<rect x='{x:g}' y='{y:g}' width='{width:g}' height='{height:g}' rx='6' "
            f"fill='{fill}' stroke='{BLACK}' stroke-dasharray='{dash}'/>"
        )

    def words(
        self, x: float, y: float, text: str, *, anchor: str = "middle", **style: str
    ) -> None:
        """Write a text, a line for each of its lines, the first on y."""
        size, weight = style.get("size", "13"), style.get("weight", "normal")
        for i, line in enumerate(text.split("\n")):
            self._parts.append(
                f"<text x='{x:g}' y='{y + 17 * i:g}' font-size='{size}' "
                f"font-weight='{weight}' text-anchor='{anchor}' "
                f"fill='{style.get('fill', BLACK)}'>{escape(line)}</text>"
            )

    def line(self, a: Point, b: Point, **style: str) -> None:
        """Draw a line, with an arrow head at its end where ``tip`` says so."""
        tip = " marker-end='url(#tip)'" if style.get("tip") else ""
        self._parts.append(
            f"<line x1='{a[0]:g}' y1='{a[1]:g}' x2='{b[0]:g}' y2='{b[1]:g}' "
            f"stroke='{style.get('stroke', BLACK)}' "
            f"stroke-width='{style.get('width', '1.2')}' "
            f"stroke-dasharray='{style.get('dash', 'none')}'{tip}/>"
        )

    def dot(self, at: Point, name: str, fill: str) -> None:
        """Draw a vertex with its name inside."""
        colour = WHITE if fill == BLACK else BLACK
        self._parts.append(
            f"<circle cx='{at[0]:g}' cy='{at[1]:g}' r='14' fill='{fill}' "
            f"stroke='{BLACK}'/>"
        )
        if name:
            self.words(at[0], at[1] + 4.5, name, size="12", fill=colour)

    def text(self) -> str:
        """Return the file."""
        return "\n".join([*self._parts, "</svg>", ""])


def named_box(
    drawing: Drawing, place: tuple[float, float, float, float], text: str, **style: str
) -> None:
    """Draw a box with text in its middle."""
    x, y, width, height = place
    drawing.box(x, y, width, height, **style)
    lines = text.count("\n")
    drawing.words(x + width / 2, y + height / 2 + 4.5 - 8.5 * lines, text)


# vertices 0 and 1 have more than TH = 3 neighbours; the others go by their parity
EDGES = (
    *((0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (1, 5), (1, 6), (1, 7), (1, 8), (1, 9)),
    *((2, 4), (3, 6), (7, 9), (5, 8)),
)
HUBS = (0, 1)
DD_PART = 0  # Algorithm 1: with the owner of the delegate of the lower degree


def shade(vertex: int) -> str:
    """Return the colour of a vertex."""
    return BLACK if vertex in HUBS else WHITE if vertex % 2 else GREY


def edge_style(u: int, v: int) -> dict[str, str]:
    """Return how an edge is drawn: by whether its ends are delegates, and where."""
    if u in HUBS and v in HUBS:
        return {"width": "3.5"}
    if u in HUBS or v in HUBS:
        return {"width": "1.2"}
    return {"width": "1.6", "dash": "none" if u % 2 == v % 2 else "5 4"} | (
        {"stroke": DARK} if u % 2 == v % 2 else {}
    )


def explain(d: Drawing) -> None:
    """Draw what the colours and lines of ``delegates`` mean."""
    y = 340
    for x, fill, name in ((30, BLACK, "delegate"), (160, GREY, "normal, of part 0"),
                          (345, WHITE, "normal, of part 1")):  # fmt: skip
        d.dot((x, y), "", fill)
        d.words(x + 22, y + 4.5, name, anchor="start")
    y = 378
    for x, style, name in (
        (16, {"width": "3.5"}, "dd"), (100, {"width": "1.2"}, "nd and dn"),
        (235, {"width": "1.6", "stroke": DARK}, "nn inside a part"),
        (420, {"width": "1.6", "dash": "5 4"}, "nn between parts: outer edges"),
    ):  # fmt: skip
        d.line((x, y), (x + 38, y), **style)
        d.words(x + 46, y + 4.5, name, anchor="start")


def delegates() -> Drawing:
    """Draw a graph, and its two parts with delegates."""
    d = Drawing(780, 400, "A graph before and after its vertices are separated")
    d.words(140, 28, "The graph, TH = 3", weight="bold")
    d.words(540, 28, "Its two parts", weight="bold")
    places: dict[int, Point] = {0: (95, 175), 1: (190, 175)}
    for i, v in enumerate((2, 4, 5, 8, 6, 9, 7, 3)):
        turn = 2 * math.pi * (i / 8) - 2.4
        places[v] = (142 + 112 * math.cos(turn), 178 + 112 * math.sin(turn))
    for u, v in EDGES:
        d.line(places[u], places[v], **edge_style(u, v))
    for v, at in places.items():
        d.dot(at, str(v), shade(v))
    d.line((275, 178), (318, 178), tip="yes", width="2")
    sides = (335, 565)
    copies: dict[tuple[int, int], Point] = {}
    for part, x in enumerate(sides):
        d.box(x, 48, 195, 262, fill=LIGHT)
        d.words(x + 97, 70, f"part {part}")
        for hub in HUBS:
            copies[part, hub] = (x + 62 + 72 * hub, 112)
        for i, v in enumerate(range(2 + part, 10, 2)):
            copies[part, v] = (x + 30 + 45 * i, 235 + (28 if i in {1, 2} else 0))
    for u, v in EDGES:
        owners = {w % 2 for w in (u, v) if w not in HUBS} or {DD_PART}
        if len(owners) == 1:
            part = owners.pop()
            d.line(copies[part, u], copies[part, v], **edge_style(u, v))
    for u, v in EDGES:
        if u not in HUBS and v not in HUBS and u % 2 != v % 2:
            d.line(copies[u % 2, u], copies[v % 2, v], **edge_style(u, v))
    for (_, v), at in copies.items():
        d.dot(at, str(v), shade(v))
    explain(d)
    return d


def one_search() -> Drawing:
    """Draw domains, what is inside them, and what goes between."""
    d = Drawing(780, 430, "A level of a search between two domains")
    d.words(390, 26, "A level of a search between domains", weight="bold")
    for x, host in ((20, "domain 0: part 0"), (525, "domain 1: part 1")):
        d.box(x, 48, 235, 250, fill=LIGHT)
        d.words(x + 117, 72, host, weight="bold")
        for i in range(4):
            named_box(d, (x + 14 + 53 * i, 88, 48, 40), f"GPU {i}")
        d.words(x + 117, 150, "shared memory: bitmap of visited\nvertices, "
                "counts, directions", size="12")  # fmt: skip
        named_box(d, (x + 20, 190, 195, 38), "1. search the inner graph")
        named_box(d, (x + 20, 244, 195, 38), "3. accept, count, choose")
    d.words(390, 175, "2. exchange", weight="bold")
    for y, text in ((205, "masks of delegates: OR"), (245, "outer edges: vertices,"),
                    (262, "or questions and answers")):  # fmt: skip
        d.words(390, y, text, size="12")
    for y in (214, 271):
        d.line((262, y), (518, y), tip="yes")
        d.line((518, y), (262, y), tip="yes")
    named_box(
        d, (150, 330, 480, 36), "sum over all domains: was anything found or accepted?"
    )
    d.line((137, 298), (225, 328), tip="yes")
    d.line((642, 298), (555, 328), tip="yes")
    d.words(300, 396, "yes: the next level", size="12")
    d.words(540, 396, "no: parents and results", size="12")
    d.line((240, 366), (240, 388))
    d.line((470, 366), (470, 388))
    return d


STEPS = (  # of a Kronecker graph: level, share of the height, what is done
    ("root", 0.03, "push,\none block"),
    ("1", 0.10, "push by\nqueue"),
    ("2", 0.45, "push that\nonly marks"),
    ("3", 1.00, "pull"),
    ("4", 0.55, "pull"),
    ("5", 0.08, "pull from\na list"),
    ("6", 0.03, "pull from\na list"),
)


def resident() -> Drawing:
    """Draw one launch: the ways of its levels over the frontier's size."""
    d = Drawing(780, 330, "One launch from the root to the results")
    d.words(390, 26, "One launch, from the root to the results", weight="bold")
    d.box(20, 44, 740, 216, fill=LIGHT)
    d.words(32, 64, "size of the frontier (schematic)", anchor="start", size="12")
    for i, (name, share, way) in enumerate(STEPS):
        x, height = 40 + 90 * i, 110 * share
        d.box(x, 190 - height, 62, height, fill=GREY if "pull" in way else WHITE)
        d.words(x + 31, 208, name if name == "root" else f"level {name}", size="12")
        d.words(x + 31, 229, way, size="12")
        if i:
            d.line((x - 14, 76), (x - 14, 192), dash="3 3", stroke=DARK)
    named_box(d, (674, 96, 78, 92), "levels,\nparents\nwritten")
    d.words(
        390, 284, "dotted: all blocks meet and choose, on the device, "
        "what the next level does", size="12",
    )  # fmt: skip
    d.words(390, 306, "white: push, from the frontier; grey: pull, from the unvisited "
            "vertices", size="12")  # fmt: skip
    return d


def questions() -> Drawing:
    """Draw the two directions of outer edges."""
    d = Drawing(780, 300, "Outer edges, pushed and asked for")
    for x, title in ((20, "Push: the frontier tells"), (410, "Pull: the others ask")):
        d.words(x + 175, 26, title, weight="bold")
        for side, part in ((x, 0), (x + 230, 1)):
            d.box(side, 44, 120, 176, fill=LIGHT)
            d.words(side + 60, 66, f"part {part}")
    for y in (105, 150, 195):
        d.dot((80, y), "", BLACK)
        d.dot((310, y), "", WHITE)
        d.dot((470, y), "", BLACK if y == 105 else WHITE)
        d.line((96, y), (294, y), tip="yes")
    d.words(195, 97, "vertex, parent", size="12")
    for y, ends in ((120, (98,)), (180, (152, 196))):
        d.dot((700, y), "", WHITE)
        for end in ends:
            d.line((684, y), (487, end), tip="yes", dash="5 4")
    d.line((487, 109), (684, 128), tip="yes", width="2.5")
    d.words(585, 92, "question", size="12")
    d.words(585, 142, "answer: parent", size="12")
    d.words(195, 246, "cost: the outer edges of the frontier,\na vertex once to a part",
            size="12")  # fmt: skip
    d.words(585, 246, "cost: the outer edges of the unvisited,\nand an answer to each",
            size="12")  # fmt: skip
    d.words(390, 290, "black: frontier; white: unvisited", size="12")
    return d


DRAWINGS = {f.__name__: f for f in (delegates, one_search, resident, questions)}


def main() -> None:
    """Write every drawing beside this file."""
    for name, make in DRAWINGS.items():
        path = Path(__file__).with_name(f"{name}.svg")
        path.write_text(make().text(), encoding="utf-8")


if __name__ == "__main__":
    main()

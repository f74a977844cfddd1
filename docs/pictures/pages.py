"""Draws the pictures of the pages: ``python docs/pictures/pages.py`` writes them.

Each function of PICTURES returns one picture as SVG, in black, white and greys, and is
written to NAME.svg beside this file; ``tests/docs`` compares the files with them.
"""

from __future__ import annotations

import math
from typing import Any

from svg import DARK, LIGHT, MIDDLE, WHITE, Picture, write

Point = tuple[float, float]
INSIDE = "#8c8c8c"  # of what is inside a part
BOLD: dict[str, Any] = {"font_weight": "bold"}
SMALL: dict[str, Any] = {"font_size": 12}


# vertices 0 and 1 have more than TH = 3 neighbours; the others go by their parity
EDGES = (
    *((0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (1, 5), (1, 6), (1, 7), (1, 8), (1, 9)),
    *((2, 4), (3, 6), (7, 9), (5, 8)),
)
HUBS = (0, 1)
DD_PART = 0  # Algorithm 1: with the owner of the delegate of the lower degree


def shade(vertex: int) -> str:
    """Return the colour of a vertex."""
    return DARK if vertex in HUBS else WHITE if vertex % 2 else MIDDLE


def edge_style(u: int, v: int) -> dict[str, Any]:
    """Return how an edge is drawn: by whether its ends are delegates, and where."""
    if u in HUBS and v in HUBS:
        return {"stroke_width": 3.5}
    if u in HUBS or v in HUBS:
        return {"stroke_width": 1.2}
    return (
        {"stroke": INSIDE, "stroke_width": 2.5} if u % 2 == v % 2 else {"dashes": "5 4"}
    )


def explain(d: Picture) -> None:
    """Draw what the colours and lines of ``delegates`` mean."""
    y = 340
    for x, fill, name in ((30, DARK, "delegate"), (160, MIDDLE, "normal, of part 0"),
                          (345, WHITE, "normal, of part 1")):  # fmt: skip
        d.dot((x, y), "", fill)
        d.text(x + 22, y + 4.5, name, "start")
    y = 378
    for x, style, name in (
        (16, edge_style(0, 1), "dd"), (100, edge_style(0, 2), "nd and dn"),
        (235, edge_style(2, 4), "nn inside a part"),
        (420, edge_style(3, 6), "nn between parts: outer edges"),
    ):  # fmt: skip
        d.line([(x, y), (x + 38, y)], **style)
        d.text(x + 46, y + 4.5, name, "start")


def delegates() -> str:
    """Draw a graph, and its two parts with delegates."""
    d = Picture(780, 400, "A graph before and after its vertices are separated")
    d.text(140, 28, "The graph, TH = 3", **BOLD)
    d.text(540, 28, "Its two parts", **BOLD)
    places: dict[int, Point] = {0: (95, 175), 1: (190, 175)}
    for i, v in enumerate((2, 4, 5, 8, 6, 9, 7, 3)):
        turn = 2 * math.pi * (i / 8) - 2.4
        places[v] = (142 + 112 * math.cos(turn), 178 + 112 * math.sin(turn))
    for u, v in EDGES:
        d.line([places[u], places[v]], **edge_style(u, v))
    for v, at in places.items():
        d.dot(at, str(v), shade(v))
    d.arrow([(275, 178), (318, 178)], stroke_width=2)
    sides = (335, 565)
    copies: dict[tuple[int, int], Point] = {}
    for part, x in enumerate(sides):
        d.box(x, 48, 195, 262, fill=LIGHT)
        d.text(x + 97, 70, f"part {part}")
        for hub in HUBS:
            copies[part, hub] = (x + 62 + 72 * hub, 112)
        for i, v in enumerate(range(2 + part, 10, 2)):
            copies[part, v] = (x + 30 + 45 * i, 235 + (28 if i in {1, 2} else 0))
    for u, v in EDGES:
        owners = {w % 2 for w in (u, v) if w not in HUBS} or {DD_PART}
        if len(owners) == 1:
            part = owners.pop()
            d.line([copies[part, u], copies[part, v]], **edge_style(u, v))
    for u, v in EDGES:
        if u not in HUBS and v not in HUBS and u % 2 != v % 2:
            d.line([copies[u % 2, u], copies[v % 2, v]], **edge_style(u, v))
    for (_, v), at in copies.items():
        d.dot(at, str(v), shade(v))
    explain(d)
    return d.svg()


def one_search() -> str:
    """Draw domains, what is inside them, and what goes between."""
    d = Picture(780, 430, "A level of a search between two domains")
    d.text(390, 26, "A level of a search between domains", **BOLD)
    for x, host in ((20, "domain 0: part 0"), (525, "domain 1: part 1")):
        d.box(x, 48, 235, 250, fill=LIGHT)
        d.text(x + 117, 72, host, **BOLD)
        for i in range(4):
            d.box(x + 14 + 53 * i, 88, 48, 40, f"GPU {i}", WHITE)
        d.text(x + 117, 150, "shared memory: bitmap of visited\nvertices, "
                "counts, directions", **SMALL)  # fmt: skip
        d.box(x + 20, 190, 195, 38, "1. search the inner graph", WHITE)
        d.box(x + 20, 244, 195, 38, "3. accept, count, choose", WHITE)
    d.text(390, 175, "2. exchange", **BOLD)
    for y, text in ((205, "masks of delegates: OR"), (245, "outer edges: vertices,"),
                    (262, "or questions and answers")):  # fmt: skip
        d.text(390, y, text, **SMALL)
    for y in (214, 271):
        d.arrow([(262, y), (518, y)])
        d.arrow([(518, y), (262, y)])
    question = "sum over all domains: was anything found or accepted?"
    d.box(150, 330, 480, 36, question, WHITE)
    d.arrow([(137, 298), (225, 328)])
    d.arrow([(642, 298), (555, 328)])
    d.text(300, 396, "yes: the next level", **SMALL)
    d.text(540, 396, "no: parents and results", **SMALL)
    d.line([(240, 366), (240, 388)])
    d.line([(470, 366), (470, 388)])
    return d.svg()


STEPS = (  # of a Kronecker graph: level, share of the height, what is done
    ("root", 0.03, "push,\none block"),
    ("1", 0.10, "push by\nqueue"),
    ("2", 0.45, "push that\nonly marks"),
    ("3", 1.00, "pull"),
    ("4", 0.55, "pull"),
    ("5", 0.08, "pull from\na list"),
    ("6", 0.03, "pull from\na list"),
)


def resident() -> str:
    """Draw one launch: the ways of its levels over the frontier's size."""
    d = Picture(780, 330, "One launch from the root to the results")
    d.text(390, 26, "One launch, from the root to the results", **BOLD)
    d.box(20, 44, 740, 216, fill=LIGHT)
    d.text(32, 64, "size of the frontier (schematic)", "start", **SMALL)
    for i, (name, share, way) in enumerate(STEPS):
        x, height = 40 + 90 * i, 110 * share
        d.box(x, 190 - height, 62, height, fill=MIDDLE if "pull" in way else WHITE)
        d.text(x + 31, 208, name if name == "root" else f"level {name}", **SMALL)
        d.text(x + 31, 229, way, **SMALL)
        if i:
            d.line([(x - 14, 76), (x - 14, 192)], dashes="3 3", stroke=INSIDE)
    d.box(674, 96, 78, 92, "levels,\nparents\nwritten", WHITE)
    d.text(
        390, 284, "dotted: all blocks meet and choose, on the device, "
        "what the next level does", **SMALL
    )  # fmt: skip
    d.text(390, 306, "white: push, from the frontier; grey: pull, from the unvisited "
            "vertices", **SMALL)  # fmt: skip
    return d.svg()


def questions() -> str:
    """Draw the two directions of outer edges."""
    d = Picture(780, 300, "Outer edges, pushed and asked for")
    for x, title in ((20, "Push: the frontier names"), (410, "Pull: the others ask")):
        d.text(x + 175, 26, title, **BOLD)
        for side, part in ((x, 0), (x + 230, 1)):
            d.box(side, 44, 120, 176, fill=LIGHT)
            d.text(side + 60, 66, f"part {part}")
    for y in (105, 150, 195):
        d.dot((80, y), "", DARK)
        d.dot((310, y), "", WHITE)
        d.dot((470, y), "", DARK if y == 105 else WHITE)
        d.arrow([(96, y), (294, y)])
    d.text(195, 97, "vertex, parent", **SMALL)
    for y, ends in ((120, (98,)), (180, (152, 196))):
        d.dot((700, y), "", WHITE)
        for end in ends:
            d.arrow([(684, y), (487, end)], dashes="5 4")
    d.arrow([(487, 109), (684, 128)], stroke_width=2.5)
    d.text(585, 92, "question", **SMALL)
    d.text(585, 142, "answer: a bit", **SMALL)
    d.text(195, 246, "cost: the outer edges of the frontier,\na vertex once to a part",
            **SMALL)  # fmt: skip
    d.text(585, 246, "cost: the outer edges of the unvisited,\nand an answer to each",
            **SMALL)  # fmt: skip
    d.text(390, 290, "black: frontier; white: unvisited", **SMALL)
    return d.svg()


def architecture() -> str:
    """Draw the way of a graph to a session, and of a search through it."""
    d = Picture(780, 420, "The way of a graph, and of a search")
    d.text(390, 24, "A graph comes to where it is searched", **BOLD)
    for x, text in ((20, "formats/\ngenerate/"), (210, "build/"), (400, "store/")):
        d.box(x, 40, 120, 52, text)
    d.box(590, 40, 170, 52, "search/holding.py\nwhat devices hold")
    d.arrow([(140, 66), (206, 66)])
    d.text(173, 58, "tuples", **SMALL)
    d.arrow([(330, 66), (396, 66)], both=True)
    d.arrow([(520, 66), (586, 66)])
    d.text(553, 58, "slices", **SMALL)
    d.line([(270, 92), (270, 118), (675, 118)])
    d.arrow([(675, 118), (675, 96)])
    d.text(470, 112, "parts, rows, graphs in device memory", **SMALL)
    d.text(390, 152, "One place chooses, one opens", **BOLD)
    for x, w, text in (
        (20, 160, "options\ndevices, ranks, sizes"),
        (230, 150, "search/choose.py"),
        (430, 150, "search/opening.py"),
        (630, 130, "Session"),
    ):
        d.box(x, 166, w, 46, text, LIGHT if "/" in text else WHITE)
    for x, end in ((180, 226), (380, 426), (580, 626)):
        d.arrow([(x, 189), (end, 189)])
    d.text(405, 229, "engine, runner, exchange, and why", **SMALL)
    d.text(390, 262, "Session.search(root)", **BOLD)
    whole = "runners/whole.py: one domain\nthe engine does all of it"
    d.box(20, 278, 330, 62, whole)
    between = "runners/between.py: several domains\n"
    between += "each level: work, advance, exchange, accept"
    d.box(370, 278, 390, 62, between)
    d.arrow([(185, 340), (185, 362)])
    d.arrow([(565, 340), (565, 362)])
    read = "Result, read by commands, Python, service, validation, reports"
    d.box(20, 366, 740, 40, read, WHITE)
    return d.svg()


PICTURES = {
    f.__name__: f for f in (architecture, delegates, one_search, resident, questions)
}

if __name__ == "__main__":
    write({name: draw() for name, draw in PICTURES.items()})

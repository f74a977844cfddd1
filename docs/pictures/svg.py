"""An SVG picture made of boxes, lines and text, the same bytes at every run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

DARK, MIDDLE, LIGHT, WHITE = "#333333", "#b5b5b5", "#eeeeee", "white"
FOLDER = Path(__file__).resolve().parent


class Picture:
    """An SVG picture of a width and height in pixels; y leads down."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.parts = [
            (
                '<svg xmlns="http://www.w3.org/2000/svg" '
                f'viewBox="0 0 {width} {height}" '
                f'width="{width}" height="{height}" font-family="sans-serif" '
                f'font-size="13" fill="{DARK}" role="img">'
            ),
            f"<title>{escape(title)}</title>",
            (
                '<defs><marker id="head" markerWidth="8" markerHeight="8" refX="7" '
                'refY="4" orient="auto-start-reverse">'
                f'<path d="M0,0 L8,4 L0,8 Z" fill="{DARK}"/></marker></defs>'
            ),
            f'<rect width="{width}" height="{height}" fill="white"/>',
        ]

    def add(self, name: str, **values: Any) -> None:
        """Add an element; in the names of attributes ``_`` stands for ``-``."""
        told = " ".join(f'{key.replace("_", "-")}="{v}"' for key, v in values.items())
        self.parts.append(f"<{name} {told}/>")

    def text(
        self, x: float, y: float, text: str, anchor: str = "middle", **values: Any
    ) -> None:
        """Write lines of text, the first of them on y."""
        more = "".join(f' {key.replace("_", "-")}="{v}"' for key, v in values.items())
        for i, line in enumerate(text.split("\n")):
            self.parts.append(
                f'<text x="{x:g}" y="{y + 17 * i:g}" text-anchor="{anchor}"{more}>'
                f"{escape(line)}</text>"
            )

    def box(  # a box is its place, its text and its look
        self, x: float, y: float, w: float, h: float, text: str = "", fill: str = LIGHT
    ) -> None:
        """Draw a box with lines of text in its middle."""
        self.add(
            "rect", x=x, y=y, width=w, height=h, rx=5, fill=fill, stroke=DARK,
        )  # fmt: skip
        if text:
            below = 17 * text.count("\n") / 2
            self.text(x + w / 2, y + h / 2 + 4.5 - below, text)

    def arrow(
        self, points: Iterable[tuple[float, float]], both: bool = False, **values: Any
    ) -> None:
        """Draw an arrow along points."""
        ends = {"marker_start": "url(#head)"} if both else {}
        self.line(points, marker_end="url(#head)", **ends, **values)

    def line(
        self, points: Iterable[tuple[float, float]], dashes: str = "", **values: Any
    ) -> None:
        """Draw a line along points."""
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        if dashes:
            values["stroke_dasharray"] = dashes
        self.add(
            "polyline", points=path, fill="none",
            **{"stroke": DARK, "stroke_width": 1.5} | values,
        )  # fmt: skip

    def dot(self, at: tuple[float, float], name: str = "", fill: str = WHITE) -> None:
        """Draw a vertex with its name inside."""
        x, y = at
        self.add("circle", cx=f"{x:g}", cy=f"{y:g}", r=14, fill=fill, stroke=DARK)
        if name:
            colour = WHITE if fill == DARK else DARK
            self.text(x, y + 4.5, name, font_size=12, fill=colour)

    def svg(self) -> str:
        """Return the picture."""
        return "\n".join([*self.parts, "</svg>", ""])


def write(pictures: Mapping[str, str]) -> None:
    """Write pictures, SVG by name, beside this file."""
    for name, text in pictures.items():
        (FOLDER / f"{name}.svg").write_text(text, encoding="utf-8")

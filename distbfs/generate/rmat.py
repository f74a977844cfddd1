"""R-MAT graphs whose initiators differ from that of Graph500.

Source: Chakrabarti, Zhan, Faloutsos 2004; the parameters of ER (a uniform graph), G and
B (heavy tails) are those of Catalyurek, Feo, Gebremedhin, Halappanavar, Pothen 2012.
Vertex ids are permuted and tuples shuffled as in ``kronecker``.
"""

from __future__ import annotations

from distbfs.generate.kronecker import Kronecker


class RmatER(Kronecker):
    """R-MAT with initiator .25, .25, .25, .25: ends are uniform."""

    family = "rmat-er"
    about = "R-MAT, uniform"
    initiator = (0.25, 0.25, 0.25, 0.25)


class RmatG(Kronecker):
    """R-MAT with initiator .45, .15, .15, .25."""

    family = "rmat-g"
    about = "R-MAT, heavy tails"
    initiator = (0.45, 0.15, 0.15, 0.25)


class RmatB(Kronecker):
    """R-MAT with initiator .55, .15, .15, .15."""

    family = "rmat-b"
    about = "R-MAT, heavier tails"
    initiator = (0.55, 0.15, 0.15, 0.15)

"""Breadth-first search for graphs that outgrow one GPU."""

__version__ = "0.1.0"

"""Searches for NetworkX: its functions of breadth-first search on our engines."""

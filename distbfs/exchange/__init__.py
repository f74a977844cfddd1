"""Ranks, and the data that parts exchange at the end of a level."""

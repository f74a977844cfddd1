"""Ranks, and what crosses parts at the end of a level."""

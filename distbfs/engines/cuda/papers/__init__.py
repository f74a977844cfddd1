"""Engines as papers describe them."""

"""Searches that are timed and reported."""

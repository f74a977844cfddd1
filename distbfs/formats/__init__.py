"""Readers of other people's files; one file per format."""

"""Readers and writers of edge files; one module per format."""

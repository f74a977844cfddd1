"""Rows, construction from tuples, relabelling, degree statistics."""

"""Generators of graphs: any slice of the edge tuples from a seed."""

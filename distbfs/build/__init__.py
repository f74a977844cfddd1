"""Construction of graphs and parts from edge tuples."""

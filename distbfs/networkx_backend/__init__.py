"""NetworkX backend: its functions of breadth-first search, run by distbfs engines."""

"""Construction on the host."""

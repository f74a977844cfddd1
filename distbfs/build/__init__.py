"""From edge tuples to what is searched."""

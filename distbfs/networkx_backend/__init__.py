"""NetworkX backend: functions based on breadth-first search, run by engines."""

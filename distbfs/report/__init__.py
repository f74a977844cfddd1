"""Tables from result files."""

"""The C engine for CPUs."""

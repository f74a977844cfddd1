"""Hardware: compile and load kernels, allocate memory, measure energy and rates."""

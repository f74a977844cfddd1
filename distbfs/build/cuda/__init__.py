"""Construction on CUDA devices."""

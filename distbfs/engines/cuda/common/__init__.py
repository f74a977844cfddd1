"""Code shared by engines on CUDA devices."""

"""Compiling and loading kernels, memory: hardware, and nothing of graphs."""

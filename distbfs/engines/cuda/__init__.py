"""Engines for CUDA devices."""

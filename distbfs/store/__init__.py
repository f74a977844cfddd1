"""The HDF5 graph store."""

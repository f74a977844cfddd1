"""The Graph500 benchmark: roots, validation, statistics, report."""

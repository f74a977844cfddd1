"""Degree separation: layout, threshold, distribution, parts."""

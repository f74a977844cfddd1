"""Validation of search results, by the rules of Graph500."""

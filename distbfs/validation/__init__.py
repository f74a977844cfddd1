"""Whether results are right, by the rules of Graph500."""

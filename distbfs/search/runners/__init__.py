"""The two ways to run searches: whole, and level by level between domains."""

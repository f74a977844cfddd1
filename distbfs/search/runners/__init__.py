"""The two ways in which searches run: whole, and level by level between domains."""

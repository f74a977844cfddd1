"""How searches run: between domains, level by level."""

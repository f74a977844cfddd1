"""The five papers: what each shows, measured again, and what came of it."""

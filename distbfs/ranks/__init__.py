"""The ranks of a run: this process, the others, errors, signals, and how a run ends."""

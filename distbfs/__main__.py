"""``python -m distbfs``: the same as the console script."""

from distbfs.entry import entry

if __name__ == "__main__":
    entry()

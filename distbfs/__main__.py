"""``python -m distbfs``: the same as the console script."""

from distbfs.cli.main import entry

if __name__ == "__main__":
    entry()

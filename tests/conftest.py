"""Puts this folder on the import path: the rooms share ``worlds`` and ``graphs``."""

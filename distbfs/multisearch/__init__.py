"""Many searches at once: the abstraction, the ways to run it, and applications on it.

Source: McLaughlin, Riedy, Bader 2015.
"""

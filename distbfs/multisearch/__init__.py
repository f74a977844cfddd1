"""Many searches at once: the abstraction, its runners, and applications of it.

Source: McLaughlin, Riedy, Bader 2015.
"""

"""Some of many combinations: any few values that may go together do in one of them."""

from itertools import combinations, product


def covering(rows, size=2):
    """Return rows (dicts) with all groups of ``size`` items that are in any row.

    Each is the one with most groups that those before it lack; the first of equals.
    """
    groups = [set(combinations(sorted(x.items()), min(size, len(x)))) for x in rows]
    left, out = set().union(*groups), []
    while left or not out:
        best = max(range(len(rows)), key=lambda k: len(left & groups[k]))
        left -= groups[best]
        out.append(rows[best])
    return out


def covered(*values, size=2):
    """Return tuples with one value of each list, in which any ``size`` values meet."""
    places = product(*(range(len(some)) for some in values))
    rows = covering([dict(enumerate(place)) for place in places], size)
    return [tuple(values[k][at] for k, at in x.items()) for x in rows]

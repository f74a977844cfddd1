"""The frontier from which a level is pulled: 1/share of all edges, by kind of search.

The larger the share, the earlier a search begins to pull.
"""

from __future__ import annotations

DEVICE = 20  # a search on one device
BETWEEN = 28  # on a device between domains: rows of delegates are shorter there
DOMAIN = 40  # on several devices of a domain: pairs between them make pushes dearer

# many searches at once, on one device or domains of one, and where rows have tails: an
# early pull misses most searches and reads nearly all of them
MANY = 4
MANY_IN_DOMAIN = 40  # on several devices of a domain: pushes go to peers
MEETING = 256  # levels of pairs, whose searches end before frontiers are large

# edges between domains are pulled where those of the frontier times this are more than
# those of unvisited vertices: the factor by which the inner graph reduces the vertices
# that have to ask, without hubs and with them
OUTER, OUTER_WITH_HUBS = 4, 16

"""Find what a package needs, and what breaks when it changes.

Run it with ``python dependencies.py``; it needs pandas.  A row (a, b) says that a needs
b.  The edges are directed and the vertices have names.  For a file of such rows, use
``distbfs.Graph.from_file("needs.csv", directed=True, relabel=True)``.
"""

import io

import pandas as pd

import distbfs

NEEDS = """\
package,needs
shop,web
shop,payments
web,templates
web,http
payments,http
payments,crypto
http,sockets
http,crypto
admin,web
admin,database
reports,database
"""

table = pd.read_csv(io.StringIO(NEEDS))
graph = distbfs.Graph.from_pandas(
    table, "package", "needs", directed=True, relabel=True
)

# along the edges: all that shop needs, the nearest first
needed = distbfs.bfs(graph, "shop").to_dict()
del needed["shop"]
print("shop needs", ", ".join(sorted(needed, key=lambda x: (needed[x], x))))

# against the edges: all that a change of crypto may break
users = distbfs.bfs(graph.reversed(), "crypto")
affected = sorted(set(users.to_dict()) - {"crypto"})
print("a change of crypto affects", ", ".join(affected))
chain = users.path_to("shop")[::-1]
print("shop needs it by", " > ".join(chain))

# many questions at once
pairs = [("admin", "crypto"), ("reports", "crypto"), ("shop", "database")]
for (a, b), answer in zip(pairs, distbfs.reachable(graph, pairs), strict=True):
    print(f"{a} {'needs' if answer else 'does not need'} {b}")

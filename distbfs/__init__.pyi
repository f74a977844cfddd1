from distbfs.search.library import Graph as Graph
from distbfs.search.library import bfs as bfs
from distbfs.search.result import Result as Result

__version__: str

from distbfs.multisearch.library import betweenness as betweenness
from distbfs.multisearch.library import closeness as closeness
from distbfs.multisearch.library import diameter as diameter
from distbfs.multisearch.library import eccentricity as eccentricity
from distbfs.multisearch.library import path_lengths as path_lengths
from distbfs.multisearch.library import reachable as reachable
from distbfs.multisearch.library import search_many as search_many
from distbfs.multisearch.library import within_hops as within_hops
from distbfs.multisearch.problem import Problem as Problem
from distbfs.multisearch.problem import State as State
from distbfs.search.graph import Graph as Graph
from distbfs.search.graph import bfs as bfs
from distbfs.search.open import open as open
from distbfs.search.result import Result as Result
from distbfs.search.session import Session as Session
from distbfs.service.client import connect as connect

__version__: str

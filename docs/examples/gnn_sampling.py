"""Sample the neighbourhood of a mini-batch for a graph neural network in PyTorch.

Run it with ``python gnn_sampling.py``; it needs PyTorch.  The graph and the features
are tensors.  distbfs takes the edges through DLPack without a copy, and finds all edges
within two hops of the batch.  Two layers on these edges alone give the vertices of the
batch the same values as two layers on the whole graph.
"""

import numpy as np
import torch

import distbfs
from distbfs.generate.small_world import SmallWorld

LAYERS, FEATURES = 2, 16
torch.manual_seed(0)

# the graph and the features as a program for neural networks holds them
made = SmallWorld(20_000, neighbours=6, rewired=0.1, seed=2)
ends = made.tuples_at(np.arange(made.tuples))
edge_index = torch.stack([torch.from_numpy(x) for x in ends])  # int64 [2, edges]
features = torch.randn(made.n, FEATURES)
weights = [torch.randn(FEATURES, FEATURES) / FEATURES**0.5 for _ in range(LAYERS)]


def layer(x: torch.Tensor, edges: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return the mean of each vertex and its neighbours, times a weight matrix."""
    both = torch.cat([edges, edges.flip(0)], dim=1)
    total = x.clone().index_add_(0, both[1], x[both[0]])
    count = 1 + torch.bincount(both[1], minlength=len(x))
    return torch.relu(total / count[:, None] @ weight)


def embed(x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
    """Return the features of all vertices after all layers."""
    for weight in weights:
        x = layer(x, edges, weight)
    return x


graph = distbfs.Graph.from_dlpack(edge_index[0], edge_index[1], n=made.n)
unique = torch.from_numpy(np.ascontiguousarray(graph.edges().T))  # each edge once

batch = torch.randperm(made.n)[:32]
sample = distbfs.k_hop_subgraph(graph, batch.tolist(), LAYERS)
sampled = torch.from_dlpack(np.ascontiguousarray(sample.edges.T))
vertices = torch.unique(torch.cat([sampled.ravel(), batch]))
local, rows = (torch.searchsorted(vertices, x) for x in (sampled, batch))  # from 0 on
print(f"batch of {len(batch)}: {len(vertices)} of {graph.n} vertices in {LAYERS} hops")
print(f"edges of the sample: {len(sample)} of {unique.shape[1]}")

on_sample = embed(features[vertices], local)[rows]
on_graph = embed(features, unique)[batch]
error = float((on_sample - on_graph).abs().max())
print(f"largest difference from the whole graph: {error:.1e}")

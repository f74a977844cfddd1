"""Memory and time of a graph and its searches, estimated in advance."""

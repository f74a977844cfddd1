"""Engine bfs4k: Busato, Bombieri 2015."""

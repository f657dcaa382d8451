"""NodePool objects: groups of simulated nodes that a controller keeps at their size."""

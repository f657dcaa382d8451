"""Fit of a pod on nodes: feasible nodes, the best of them, and the reasons why none is feasible."""

"""Demands of pods on nodes, read once for all pods with the same demands."""

"""Volumes of pods: nodes that they allow, and their binding once a node is chosen."""

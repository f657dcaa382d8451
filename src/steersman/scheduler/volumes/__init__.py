"""Volumes of pods: which nodes they allow, and their binding once a node is chosen."""

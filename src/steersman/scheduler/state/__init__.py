"""Cached state of nodes and of the pods on them, updated by informers and by decisions."""

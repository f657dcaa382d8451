"""Explanations of pods: why a pod has no node, or does not run on the node that it has."""

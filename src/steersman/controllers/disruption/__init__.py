"""Disruption controller: the number of pods that PodDisruptionBudgets allow to evict."""

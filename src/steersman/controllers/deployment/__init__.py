"""Deployments: ReplicaSets for each version of a pod template, and the way from one to the next."""

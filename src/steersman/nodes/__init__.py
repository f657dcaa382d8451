"""Simulated nodes: kubelets that report what real ones would, and run nothing."""

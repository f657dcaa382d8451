"""Simulated nodes: kubelets that report what real kubelets would report, and run no containers."""

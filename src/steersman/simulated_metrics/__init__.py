"""Metrics APIs of a simulated cluster: usage of containers, and values that users set."""

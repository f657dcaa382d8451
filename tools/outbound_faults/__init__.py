"""Servers that the API server asks, and that fail: `python -m tools.outbound_faults`."""

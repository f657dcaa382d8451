"""Fault objects: faults that users of a cluster make and remove through the API."""

"""Aggregation: group versions that other servers answer, behind this server."""

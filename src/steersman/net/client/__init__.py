"""Connections and requests to other servers."""

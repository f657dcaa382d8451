"""Pods, services, nodes and the other kinds of the core group."""

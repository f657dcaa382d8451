"""Primitives for who runs what, where and for how long: offloading, worker threads, letting others have their turn.

This package knows the standard library only. See docs/architecture.md, "How work is done here".
"""

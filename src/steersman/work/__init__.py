"""Primitives for who runs what, where and for how long: offloading, worker threads, time slices, queues and caches.

This package uses the standard library only. See docs/architecture.md, "How work is done here".
"""

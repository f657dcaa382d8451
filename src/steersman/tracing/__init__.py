"""Traces of requests: named steps with start, duration and attributes, made only while somebody reads them.

This package uses the standard library only, so that storage, webhooks and filters can add steps. See docs/trace.md.
"""

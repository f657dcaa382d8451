"""Programs about the project, run from its root: `python -m tools.NAME`. They make what is generated, compare the
server with the reference, and try to break it.
"""

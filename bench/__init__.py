"""Benchmarks, run from the root of the project: `python -m bench.NAME`; see README.md."""

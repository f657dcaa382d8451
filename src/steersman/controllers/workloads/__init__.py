"""Shared parts of workload controllers: owner references, expectations, pods from templates, hashes, revisions."""

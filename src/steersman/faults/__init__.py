"""Faults on demand: requests that fail, wait or lose their answers, as clients of an API server must expect."""

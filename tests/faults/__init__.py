"""Tests of faults on demand."""

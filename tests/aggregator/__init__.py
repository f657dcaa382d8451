"""Tests of aggregated servers."""

"""Tests of reports on requests."""

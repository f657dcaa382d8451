"""Validation that kinds of several groups share."""

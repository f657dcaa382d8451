"""Faults under load, and a judge of what came of it."""

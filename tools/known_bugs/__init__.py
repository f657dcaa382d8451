"""Operators with known bugs, and their next versions, under `steersman stress`."""

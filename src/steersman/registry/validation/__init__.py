"""Rules that kinds of several groups have in common."""

"""Scheduling queue: order of pods, waiting pods, and the events that bring them back."""

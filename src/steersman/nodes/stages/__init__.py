"""Stages of kwok: configured life cycles of pods and nodes, with statuses, delays and events."""

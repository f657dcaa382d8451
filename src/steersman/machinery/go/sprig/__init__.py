"""Sprig: functions for templates, which many programs in Go add to those of Go itself (Masterminds/sprig v3)."""

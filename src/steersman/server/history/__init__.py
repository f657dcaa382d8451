"""Paths below /debug/history: the stored writes of an object or a collection, and objects at a past revision."""

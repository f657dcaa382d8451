"""Garbage collection of objects whose owners are gone (pkg/controller/garbagecollector)."""

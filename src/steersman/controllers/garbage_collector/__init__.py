"""Deletes objects whose owners are gone (pkg/controller/garbagecollector)."""

"""The watch cache: the objects of a resource in their served form, their recent changes, and their watchers."""

"""Several processes that are one server: an owner of the storage and of the port, and workers that answer requests."""

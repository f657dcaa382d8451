"""A server of several processes: an owner of the storage and the port, and workers that answer requests."""

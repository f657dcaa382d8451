"""The watch cache: one resource as it is served, its recent changes, and everybody who watches it."""

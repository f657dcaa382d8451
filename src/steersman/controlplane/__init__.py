"""The composition root: options to configuration, stores, bootstrap objects."""

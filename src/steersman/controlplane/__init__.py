"""The composition root: the three servers chained, options to configuration, bootstrap objects."""

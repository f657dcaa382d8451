"""The composition root: builds a whole API server from its options."""

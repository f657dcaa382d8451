"""Which volumes are attached to which nodes."""

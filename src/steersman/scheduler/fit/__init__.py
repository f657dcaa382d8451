"""Which nodes a pod fits on, which is best, and why none is."""

"""controller-runtime's own tests against the programs of `steersman envtest` and against the real ones."""

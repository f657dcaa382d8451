"""Other projects' own tests against the programs of `steersman envtest` and against the real ones."""

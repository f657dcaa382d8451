"""Controllers of resource claims: creation for pods, release after use, eviction by device taints."""

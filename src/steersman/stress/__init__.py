"""Search for faults of operators: a run without faults, and then one run for each fault at each of its requests."""

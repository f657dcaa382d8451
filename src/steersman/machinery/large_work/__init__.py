"""Large requests: their sizes, bounds on their number and memory, and a bound on nesting."""

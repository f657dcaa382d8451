"""What pods ask of nodes, read once for all pods that ask for the same."""

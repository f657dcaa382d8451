"""Who sends a request: the contract, and one way to find out in each file."""

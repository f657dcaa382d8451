"""Reports on the requests of clients: how many, what was in vain, and the rights that they need."""

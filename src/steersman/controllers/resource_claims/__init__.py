"""Claims of devices: made for pods, given back by them."""

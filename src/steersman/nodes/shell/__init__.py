"""A small shell: what simulated containers run, and what is run in them."""

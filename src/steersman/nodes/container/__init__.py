"""Life cycle of the containers of simulated pods."""

"""The lives of the containers of simulated pods."""

"""`steersman up`, `status`, `down` and `reset`: simulated clusters."""

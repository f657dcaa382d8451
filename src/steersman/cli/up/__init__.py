"""`steersman up`, and what it leaves behind: `status` and `down`."""

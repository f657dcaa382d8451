"""The simulated CSI driver: it creates, attaches and enlarges volumes without data (only in `steersman up`)."""

"""The CSI driver of the simulation: it makes, attaches and enlarges volumes that have no data (`steersman up` only)."""

"""A whole cluster in one process: control plane, controllers, scheduler, simulated nodes."""

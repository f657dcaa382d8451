"""Events of events.k8s.io, which are the core group's under other names."""

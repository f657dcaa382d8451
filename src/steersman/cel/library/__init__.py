"""Libraries of functions for expressions: extensions of the language, and those that Kubernetes adds."""

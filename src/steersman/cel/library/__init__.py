"""Libraries of functions for expressions: extensions of the language, and the functions of Kubernetes."""

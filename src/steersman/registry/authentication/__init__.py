"""The reviews of authentication.k8s.io, which identify users."""

"""The reviews of authorization.k8s.io, which answer access questions."""

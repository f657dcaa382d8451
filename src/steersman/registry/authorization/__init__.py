"""The reviews of authorization.k8s.io: what somebody may do."""

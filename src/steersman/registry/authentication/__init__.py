"""The reviews of authentication.k8s.io: who somebody is."""

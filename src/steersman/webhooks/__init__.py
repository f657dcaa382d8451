"""Clients of other servers: where they are, as kubeconfig files say it, and requests to webhooks."""

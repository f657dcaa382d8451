"""Requests to webhooks, and the configuration of their endpoints by kubeconfig files or API objects."""

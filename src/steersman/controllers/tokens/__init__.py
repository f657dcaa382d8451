"""Tokens in secrets: of service accounts, and bootstrap tokens for joining a cluster."""

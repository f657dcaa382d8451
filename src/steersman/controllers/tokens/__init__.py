"""Tokens in secrets: of service accounts, and those with which nodes join a cluster."""

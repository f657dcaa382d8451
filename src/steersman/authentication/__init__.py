"""Authentication: the interface, and one authenticator per file."""

"""The resources of policy."""

"""The contract of a resource: one small Protocol per capability, the Strategy, and the declaration of a resource."""

"""Handlers of verbs, one per file: from a request to a capability of the resource's storage and back."""

"""The verbs, one a file: from a request to a capability of the resource and back."""

"""From a request to a resource's capability and back. Knows no store."""

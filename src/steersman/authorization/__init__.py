"""Authorization: the interface, and one authorizer per file."""

"""What a server serves, and may serve otherwise in a moment."""

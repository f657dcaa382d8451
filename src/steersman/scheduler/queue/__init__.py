"""Which pod is next, which wait, and what brings them back."""

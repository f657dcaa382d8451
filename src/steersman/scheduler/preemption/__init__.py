"""Room made for a pod by deleting pods of lower priority."""

"""The spec of persistent volumes, as volumes and attachments have it."""

"""The spec of persistent volumes, in volumes and attachments."""

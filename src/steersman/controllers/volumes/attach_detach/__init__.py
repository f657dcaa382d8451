"""Attachment of volumes to nodes."""

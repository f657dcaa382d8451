"""Custom resources: what follows the CustomResourceDefinitions that are stored, and serves what they define."""

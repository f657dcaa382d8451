"""Custom resources: follows the stored CustomResourceDefinitions, and serves the resources that they define."""

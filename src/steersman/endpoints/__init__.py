"""HTTP endpoints of resources: from a request to a capability of the resource's storage and back. Independent of
stores.
"""

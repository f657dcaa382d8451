"""The resources of resource.k8s.io: devices, and who may use them."""

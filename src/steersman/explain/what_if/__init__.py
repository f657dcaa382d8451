"""Plans of manifests: the nodes that their pods would get, and the pods that they would push out."""

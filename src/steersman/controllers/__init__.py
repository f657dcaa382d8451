"""The controllers of kube-controller-manager, as clients of the API; each is a file or a folder."""

"""The controllers of kube-controller-manager: clients of the API, one a file."""

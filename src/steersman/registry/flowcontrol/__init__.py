"""The resources of flowcontrol.apiserver.k8s.io."""

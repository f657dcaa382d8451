"""Controller of DaemonSets: a pod on each matching node (pkg/controller/daemon)."""

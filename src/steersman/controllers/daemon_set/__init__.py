"""DaemonSets: a pod on each node that suits (pkg/controller/daemon)."""

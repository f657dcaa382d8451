"""Where events go: a log file, a webhook; in batches, cut to a size (k8s.io/apiserver `plugin/pkg/audit`)."""

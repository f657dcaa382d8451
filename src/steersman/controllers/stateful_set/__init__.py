"""Controller of StatefulSets: pods with ordinals, stable names and their own storage (pkg/controller/statefulset)."""

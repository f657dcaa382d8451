"""StatefulSets: pods with numbers, names and storage of their own (pkg/controller/statefulset)."""

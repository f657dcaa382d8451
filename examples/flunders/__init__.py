"""The resources of Kubernetes' sample-apiserver (wardle.example.com), declared with the library."""

"""Structural schemas. Texts of errors are those that kube-apiserver 1.36.3 gave to the same requests, unless a test
says otherwise."""

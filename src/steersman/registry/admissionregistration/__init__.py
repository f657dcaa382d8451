"""The resources of admissionregistration.k8s.io."""

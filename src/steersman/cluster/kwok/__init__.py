"""Kinds of kwok (kwok.x-k8s.io/v1alpha1) in a running cluster."""

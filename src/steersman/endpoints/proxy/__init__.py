"""Proxying of requests to kubelets, pods and services: plain requests, and upgraded connections."""

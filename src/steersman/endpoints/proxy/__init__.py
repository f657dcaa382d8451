"""Requests that are passed on to a kubelet, a pod or a service: plain ones, and connections that are taken over."""

"""Devices of simulated nodes, as drivers of dynamic resource allocation and the kubelet report them."""

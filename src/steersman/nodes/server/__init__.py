"""HTTP servers of simulated nodes and pods: the kubelet's API, and the ports of pods."""

"""What simulated nodes and pods answer: the kubelet's API, and the ports of pods."""

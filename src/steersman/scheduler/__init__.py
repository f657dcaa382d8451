"""The scheduler (kube-scheduler): a node for each pod, at a cost that follows what changed and not nodes times pods."""

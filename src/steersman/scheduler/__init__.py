"""The scheduler (kube-scheduler): a node for each pod, at a cost that follows what changed and not nodes times pods.

Pods that ask for the same share a `Demand`, and a `Ranking` of all nodes is cached for each recent demand. For the next
pod with that demand, only changed nodes are judged again. Rules about one node (name, taints, ports, resources) reject
it or give its score. Rules about other nodes (topology spread, pod affinity) are judged for groups of nodes, and a heap
holds the best node of each group. Volumes and device claims are checked last, on the nodes that remain.
"""

"""Decisions of the scheduler compared with those of the real kube-scheduler, on random small clusters.

    python -m tools.scheduler_comparison --server 'COMMAND' --scheduler PATH --cases 200 --seed 1

COMMAND starts a kube-apiserver in the foreground and prints one JSON line with its url, ca and an administrator's
token; PATH is the real kube-scheduler, which is started on it. A case is a few nodes with pods on them and one pod that
has none. What the real scheduler makes of that pod is held against what ours decides from the same objects: whether it
gets a node, one of the best by our scores; else the message, the node it is nominated for and the pods that have to go.
"""

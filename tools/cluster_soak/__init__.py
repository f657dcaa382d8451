"""A simulated cluster under random work, with nodes that fail and a process that is killed.

    python -m tools.cluster_soak [--minutes 30] [--seed N] [--nodes 6] [--round 120] [--kill-every 20]

Workloads of all kinds are made, changed and deleted at random on `steersman up`; nodes go out of reach and come back,
are cordoned; now and then the process is killed (SIGKILL) and started again on its data. At the end of each round the
nodes are healed, and everything must be as it was asked for: what was acknowledged is there, workloads are complete,
what was deleted is gone with all that it owned, no two pods have one address. Then memory and file descriptors are
told; what grows from round to round leaks. Exit code 1 if something is not as it must be.
"""

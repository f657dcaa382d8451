"""Published autoscalers on a cluster: seconds until a Deployment is served, and until its nodes are gone again.

    python bench/reference/reference build --cluster
    python -m bench.autoscalers --a 'python bench/reference/reference up --nodes {nodes}' \\
        --b 'python bench/serve up --nodes {nodes}' [--rows karpenter,cluster-autoscaler] [--pods 300]

Commands are such as side_by_side.py takes. Each row has a fresh cluster of one tainted node, and only one runs at a time.
The autoscaler is built from its Go module (Karpenter, by its kwok provider), or taken from $STEERSMAN_AUTOSCALERS
(cluster-autoscaler, by its kwok provider). Prints a table: nodes, seconds, CPU seconds and RSS (MiB) of the cluster's
processes and of the autoscaler.
"""

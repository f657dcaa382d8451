"""Controller of Deployments: a ReplicaSet for each version of the pod template, and rollouts between them."""

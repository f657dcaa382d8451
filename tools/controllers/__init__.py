"""Compares controllers with kube-controller-manager: the same scenarios on both, what comes of them side by side.

    python -m tools.controllers --reference COMMAND --manager COMMAND [SCENARIO ...]

The reference's command starts an API server in the foreground and prints one line of JSON with `url`, `ca` and `token`;
a file `kubeconfig` is beside that of `ca`. The manager's starts kube-controller-manager, with `{kubeconfig}` in it and
`{controllers}` for those that are compared, and `{folder}` for the folder of `ca`; it needs
`--cluster-signing-cert-file`, `--cluster-signing-key-file`, `--cluster-signing-duration=240h`,
`--service-account-private-key-file`, `--root-ca-file`, `--allocate-node-cidrs` and `--cluster-cidr=10.244.0.0/16` too.
Ours is started by `tools.controllers.ours`. With `--record FOLDER` what the reference made of each scenario is kept in
a file; with `--recorded FOLDER` ours is compared with these files.
"""

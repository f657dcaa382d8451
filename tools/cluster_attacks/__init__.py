"""Attacks on a simulated cluster by a user with rights in one namespace.

    python -m tools.cluster_attacks [--list] [--held 50] [--running 5] [ATTACK ...]

Each attack is played on a `steersman up` of its own: a service account that is an administrator of the namespace
`attacker` makes objects as large, or as many, as it may. Meanwhile somebody else makes a pod a second. Told are what
held the event loop (`--debug-loop-watchdog`), how long the others' pods took until they ran, the CPU time and the
memory. Exit code 1 if something held the loop for longer than `--held` milliseconds, or a pod of somebody else took
longer than `--running` seconds until it ran.
"""

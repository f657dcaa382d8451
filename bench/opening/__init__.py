"""Time to open a dump of a large cluster, and what that cluster has to do afterwards.

    python -m bench.opening [--nodes 500] [--pods 10000] [--seed 1] [--rounds 3] [--equal]

The dump is made from the seed. Prints a JSON line for each round: seconds and CPU seconds of `steersman up --from` until it
is ready, and until nothing but leases has been written for a second; the writes of pods; memory. With `--equal` the
opened cluster is imported, opened and imported again: both imports must have equal objects, or the exit code is 1. The
second opening is that of an import, which has what the dump lacks: EndpointSlices, certificates.
"""

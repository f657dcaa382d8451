"""Files of /sys/fs/cgroup (version 2) that tell a container its resources.

Follows pkg/kubelet/cm (MilliCPUToShares, MilliCPUToQuota) and the conversion of shares in container runtimes
(github.com/opencontainers/cgroups, ConvertCPUSharesToCgroupV2Value).
"""

from __future__ import annotations

import math
from typing import Final

from steersman.api.core.v1 import ContainerStatus, ResourceRequirements
from steersman.machinery.values.quantity import QuantityError, nanos
from steersman.nodes.pod_level import limits_in

ROOT: Final = "/sys/fs/cgroup"
_PERIOD: Final = 100_000
"""Microseconds of the period that a CPU quota is for."""
_LEAST_QUOTA: Final = 1000
_LEAST_SHARES: Final = 2
_MOST_SHARES: Final = 262_144


def cgroup_files(
    asked: ResourceRequirements, status: ContainerStatus | None, whole: ResourceRequirements | None = None
) -> dict[str, bytes]:
    """Return the files with a container's limits and CPU weight, by path.

    The resources are those in its status if it has any, otherwise `asked`. Limits of the pod as a whole (`whole`) apply
    where the container has none.
    """
    resources = status.resources if status is not None and status.resources is not None else asked
    limits = limits_in(whole, resources)
    limit = _milli(limits.get("cpu", ""))
    quota = str(max(limit * _PERIOD // 1000, _LEAST_QUOTA)) if limit else "max"
    memory = -(-_nanos(limits.get("memory", "")) // 10**9)
    weight = _weight(_milli(resources.requests.get("cpu", "")) or limit)
    return {
        f"{ROOT}/cpu.max": f"{quota} {_PERIOD}\n".encode(),
        f"{ROOT}/cpu.weight": f"{weight}\n".encode(),
        f"{ROOT}/memory.max": f"{memory or 'max'}\n".encode(),
    }


def _nanos(amount: str) -> int:
    try:
        return nanos(amount) if amount else 0
    except QuantityError:
        return 0


def _milli(amount: str) -> int:
    """Return an amount of CPU in thousandths, rounded up."""
    return -(-_nanos(amount) // 10**6)


def _weight(milli: int) -> int:
    """Return the CPU weight, from 1 to 10,000, for thousandths of a CPU."""
    shares = min(max(milli * 1024 // 1000, _LEAST_SHARES), _MOST_SHARES)
    if shares == _LEAST_SHARES:
        return 1
    if shares == _MOST_SHARES:
        return 10_000
    log = math.log2(shares)
    return math.ceil(10 ** ((log * log + 125 * log) / 612 - 7 / 34))

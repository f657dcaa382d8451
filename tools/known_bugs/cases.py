"""Known bugs: the report, the operator before and after its repair, and the workload that can show it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.known_bugs.programs import HERE, KUBERNETES, GoModule, GoPackages, Program, PythonPackage, SmallOperator


@dataclass(frozen=True, slots=True)
class Case:
    """A bug, with options of `steersman stress` that suffice to find it."""

    name: str
    report: str
    point: str
    """Fault and point at which it must be found."""
    kinds: str
    before: Program
    after: Program
    test: str
    manifests: tuple[Path, ...] = ()
    options: tuple[str, ...] = ()
    further: frozenset[str] = frozenset()
    """Faults and points that show another bug, which the repair leaves."""


_RABBITMQ: Final = "github.com/rabbitmq/cluster-operator"
_CERT_MANAGER: Final = "github.com/cert-manager/cert-manager"
_KUBERAY: Final = "github.com/ray-project/kuberay/ray-operator"
_QUICK_LEADER: Final = (
    "OPERATOR_NAMESPACE=default LEASE_DURATION=4 RENEW_DEADLINE=3 RETRY_PERIOD=1 KUBE_CONFIG=$KUBECONFIG"
)
_DASK: Final = (HERE / "dask" / "definitions.yaml",)


def _shell(name: str) -> str:
    return f"cd {HERE / name} && exec sh -e test.sh"


def _small(name: str, report: str, point: str, kinds: str) -> Case:
    before, after = SmallOperator(name, "small"), SmallOperator(name, "small, repaired", "--fixed")
    test = f"exec {sys.executable} -m tests.stress.workloads {name}"
    return Case(name, report, point, kinds, before, after, test)


def _rabbitmq(version: str) -> GoModule:
    return GoModule("rabbitmq", _RABBITMQ, version, "-metrics-bind-address=0", _QUICK_LEADER)


def _rays(version: str) -> GoModule:
    flags = "-metrics-addr=0 -health-probe-bind-address=0 -enable-leader-election=false"
    return GoModule("rays", _KUBERAY, version, flags, "ENABLE_PROBES_INJECTION=false")


CASES: Final = (
    Case(
        "job",
        "https://github.com/kubernetes/kubernetes/pull/111026",
        "conflict at create pods default/many-* (2nd)",
        "conflict",
        GoPackages("job", KUBERNETES, "v1.24.2"),
        GoPackages("job", KUBERNETES, "v1.24.4"),
        _shell("job"),
    ),
    Case(
        "rabbitmq",
        "https://github.com/rabbitmq/cluster-operator/issues/782",
        "crash-after at delete statefulsets.apps default/queue-server",
        "crash-after",
        _rabbitmq("v1.8.3"),
        _rabbitmq("v1.10.0"),
        _shell("rabbitmq"),
        (HERE / "rabbitmq" / "class.yaml",),
        ("--nodes", "1"),
        # An operator that is killed between the two never marks the StatefulSet as new, and enables no feature flags.
        frozenset({"crash-after at create statefulsets.apps default/queue-server (2nd)"}),
    ),
    Case(
        "dask",
        "https://github.com/dask/dask-kubernetes/issues/654",
        "crash-after at create services default/simple-scheduler",
        "crash-after",
        PythonPackage("dask-kubernetes", "2023.3.2", "dask_kubernetes.operator.controller", _DASK),
        PythonPackage("dask-kubernetes", "2023.6.0", "dask_kubernetes.operator.controller", _DASK),
        _shell("dask"),
        options=("--controllers",),
        # kopf notes in one request that a phase was handled, and sets the next phase in another: the phase stays empty
        # after the first of them, and "Created" after the second.
        further=frozenset(
            f"crash-after at patch daskclusters.kubernetes.dask.org default/simple ({count})"
            for count in ("2nd", "3rd")
        ),
    ),
    Case(
        "certificates",
        "https://github.com/cert-manager/cert-manager/issues/4956",
        "stale at ADDED certificaterequests.cert-manager.io default/web-*",
        "stale",
        GoPackages("certificates", _CERT_MANAGER, "v1.12.4", "deploy/crds"),
        GoPackages("certificates", _CERT_MANAGER, "v1.13.0", "deploy/crds"),
        _shell("certificates"),
        options=("--hold", "8s"),
        # As long as its cache has no Secret, it issues the certificate again and again, without a pause.
        further=frozenset({"stale at ADDED secrets default/web"}),
    ),
    Case(
        "rays",
        "https://github.com/ray-project/kuberay/issues/715",
        "stale at ADDED pods default/rays-head-*",
        "stale",
        _rays("v1.2.2"),
        _rays("v1.3.2"),
        _shell("rays"),
        # Parameters of `ray start` come in the random order of a Go map.
        options=("--nodes", "1", "--ignore", "Pod default/rays-*: spec.containers*"),
    ),
    _small(
        "members",
        "https://github.com/bottlerocket-os/bottlerocket-update-operator/issues/106",
        "expired at DELETED configmaps default/a",
        "expired",
    ),
)

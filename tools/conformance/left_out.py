"""The conformance tests that are left out, each with the reason why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Tests that are not run: those whose names match one of some regular expressions."""

    why: str
    """Reason, in the words of the documents."""
    tests: tuple[str, ...]


SIMULATED: Final = (
    LeftOut(
        "pods reach each other, Services or the node over a real network",
        (
            r"Networking Granular Checks",
            r"session affinity",
            r"functioning NodePort",
            r"HostPort validates",
            r"DNS should (provide|resolve|support)",
            r"Guestbook",
            r"Services should be able to change the type",
            r"Services should serve (a basic endpoint|multiport endpoints|endpoints on same port)",
            r"EndpointSlice should support a Service with multiple",
            r"Container Lifecycle Hook",
            r"PreStop should call prestop",
            r"support OIDC discovery",
        ),
    ),
    LeftOut(
        "a kernel keeps containers apart",
        (
            r"Sysctls .* should support sysctls",
            r"privileged should run the container as unprivileged",
            r"AllowPrivilegeEscalation",
            r"read only busybox container",
            r"EtcHosts should test",
        ),
    ),
    LeftOut(
        "a node has to refuse a path that leads out of a volume",
        (r"volume subpath with (backticks|absolute path)", r"failing subpath expansion"),
    ),
    LeftOut("a program is used that simulated containers do not have", (r"binary data should be reflected",)),
    LeftOut(
        "a server from an image has to serve its files, or TLS",
        (
            r"Update Demo",
            r"ImageVolume",
            r"Proxy .* should proxy through a service and a pod",
            r"StatefulSet .* (predictable order|Burst scaling|canary|rolling updates and)",
        ),
    ),
    LeftOut(
        "a probe has to fail by what a program does",
        (
            r"readiness probe that fails",
            r"should be restarted with (an|a (/healthz|local|GRPC|failing))",
            r"monotonically increasing restart count",
        ),
    ),
    LeftOut("a log would have a token in it", (r"should mount projected service account token",)),
)
"""With simulated nodes: what these do not do."""

TOLD: Final = (
    *SIMULATED,
    LeftOut(
        "a container has to run: nodes are only told of",
        (
            r"NodeConformance",
            r"should serve",
            r"Proxy version",
            r"service account token into|mount an API token",
            r"be consumable",
            r"EmptyDir",
            r"Downward",
            r"Projected",
            r"InPlace",
            r"Security Context",
            r"Variable Expansion",
            r"should mount",
            r"serve a basic",
            r"Kubectl logs",
            r"Kubectl expose",
            r"Job should (run|allow|execute|mark|terminate|delete a)",
            r"successPolicy",
            r"complex daemon",
            r"StatefulSet .* evicted",
            r"NoExecute",
            r"SchedulerPre.*(valid|runs)",
            r"exists conflict",
            r"[Vv]olume",
            r"master service",
            r"CronJob should (not|replace|sched)",
            r"podspec updates",
            r"by-node",
        ),
    ),
)
"""With nodes that are only told of (`NodeAgent`)."""


def pattern(left_out: Iterable[LeftOut]) -> str:
    """A regular expression that the names of all these tests match, and no other's."""
    return "|".join(test for each in left_out for test in each.tests)


def counted(left_out: Sequence[LeftOut], names: Iterable[str]) -> Counter[str]:
    """Return the number of tests that each reason leaves out; a test counts for the first reason."""
    counts: Counter[str] = Counter()
    judged = [(each.why, re.compile(pattern([each]))) for each in left_out]
    for name in names:
        why = next((why for why, judge in judged if judge.search(name)), None)
        if why is not None:
            counts[why] += 1
    return counts

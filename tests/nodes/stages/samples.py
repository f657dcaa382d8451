"""Sample stages for tests."""

from __future__ import annotations

from typing import Any

Plain = dict[str, Any]


def stage(name: str, kind: str = "Pod", **spec: Any) -> Plain:
    """Return a Stage object."""
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {"resourceRef": {"apiGroup": "v1", "kind": kind}, **spec},
    }


def where(key: str, operator: str, *values: str) -> Plain:
    """Return an expression of a selector."""
    return {"key": key, "operator": operator, "values": list(values)} if values else {"key": key, "operator": operator}


def selecting(*expressions: Plain, **more: Any) -> Plain:
    """Return a selector."""
    return {"matchExpressions": list(expressions), **more}


RUNS = stage(
    "runs",
    selector=selecting(where(".metadata.deletionTimestamp", "DoesNotExist"), where(".status.phase", "In", "Pending")),
    delay={"durationMilliseconds": 5000, "durationFrom": {"expressionFrom": '.metadata.annotations["delay"]'}},
    next={
        "event": {"type": "Normal", "reason": "Runs", "message": "it runs"},
        "statusTemplate": """
            {{ $now := Now }}
            phase: Running
            startTime: {{ $now | Quote }}
            hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
            podIP: {{ PodIPWith .spec.nodeName false "" .metadata.name .metadata.namespace | Quote }}
            conditions:
            - {type: Ready, status: "True", lastTransitionTime: {{ $now | Quote }}}
            containerStatuses:
            {{ range .spec.containers }}
            - {name: {{ .name }}, image: {{ .image | Quote }}, imageID: "", ready: true, restartCount: 0,
               state: {running: {startedAt: {{ $now | Quote }}}}}
            {{ end }}
        """,
    },
)
ENDS = stage(
    "ends",
    selector=selecting(where(".metadata.deletionTimestamp", "Exists"), where(".metadata.finalizers", "DoesNotExist")),
    next={"delete": True},
)

"""The Targets cell of a HorizontalPodAutoscaler: current and target values of metrics."""

from __future__ import annotations

from typing import Any, Final

from steersman.api.autoscaling.v2 import HorizontalPodAutoscaler, MetricSpec, MetricStatus, MetricTarget

MAX_SHOWN: Final = 2
"""The number of metrics in the cell."""

_UNKNOWN: Final = "<unknown>"
_SOURCES: Final = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "container_resource",
}


def metrics(autoscaler: HorizontalPodAutoscaler) -> str:
    """Return every metric as `current/target`, e.g. `cpu: 30%/80%, 12/100 (avg) + 1 more...`."""
    specs = autoscaler.spec.metrics
    if not specs:
        return "<none>"
    statuses: list[MetricStatus | None] = [*(autoscaler.status.current_metrics or ())]
    statuses += [None] * (len(specs) - len(statuses))
    shown = ", ".join(_metric(spec, status) for spec, status in zip(specs[:MAX_SHOWN], statuses, strict=False))
    return f"{shown} + {len(specs) - MAX_SHOWN} more..." if len(specs) > MAX_SHOWN else shown


def _metric(spec: MetricSpec, status: MetricStatus | None) -> str:
    if (name := _SOURCES.get(spec.type)) is None:
        return "<unknown type>"
    source: Any = getattr(spec, name)
    observed: Any = getattr(status, name) if status is not None else None
    current = observed.current if observed is not None else None
    target: MetricTarget = source.target
    if name in ("resource", "container_resource"):
        return f"{source.name}: {_resource(target, current)}"
    if name == "pods":
        return f"{_text(current and current.average_value)}/{_quantity(target.average_value)}"
    if target.average_value is not None:
        return f"{_text(current and current.average_value)}/{target.average_value} (avg)"
    return f"{_text(current and current.value)}/{_quantity(target.value)}"


def _resource(target: MetricTarget, current: Any) -> str:
    if target.average_value is not None:
        return f"{_text(current and current.average_value)}/{target.average_value}"
    wanted = "<auto>" if target.average_utilization is None else f"{target.average_utilization}%"
    if current is None or current.average_utilization is None:
        return f"{_UNKNOWN}/{wanted}"
    return f"{current.average_utilization}%/{wanted}"


def _text(value: str | None) -> str:
    return _UNKNOWN if value is None else value


def _quantity(value: str | None) -> str:
    return "<nil>" if value is None else value

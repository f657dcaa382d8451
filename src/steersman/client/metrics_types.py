"""Objects of the metrics APIs: metrics.k8s.io, custom.metrics.k8s.io, external.metrics.k8s.io (k8s.io/metrics)."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from steersman.api.core.v1 import ObjectReference
from steersman.api.meta.v1 import LabelSelector, ListMeta, ObjectMeta
from steersman.api.scalars import Duration, Int64, Quantity, Time
from steersman.client.api_resource import APIResource

RESOURCE_METRICS: Final = "metrics.k8s.io"
CUSTOM_METRICS: Final = "custom.metrics.k8s.io"
EXTERNAL_METRICS: Final = "external.metrics.k8s.io"


class _Wire(msgspec.Struct, omit_defaults=True, kw_only=True, rename="camel"):
    """Base of the types. Unknown members are ignored, because other servers may send more."""


def _empty_list() -> list[Any]:
    """Return an empty list that is encoded too: the default of msgspec would be left out."""
    return []


def _no_members() -> dict[str, str]:
    return {}


class ContainerMetrics(_Wire):
    name: str = msgspec.field(default_factory=str)
    usage: dict[str, Quantity] = msgspec.field(default_factory=_no_members)


class PodMetrics(_Wire):
    kind: str = ""
    api_version: str = ""
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    timestamp: Time | None = msgspec.field(default_factory=lambda: None)
    window: Duration = msgspec.field(default_factory=lambda: "0s")
    containers: list[ContainerMetrics] = msgspec.field(default_factory=_empty_list)


class NodeMetrics(_Wire):
    kind: str = ""
    api_version: str = ""
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    timestamp: Time | None = msgspec.field(default_factory=lambda: None)
    window: Duration = msgspec.field(default_factory=lambda: "0s")
    usage: dict[str, Quantity] = msgspec.field(default_factory=_no_members)


class MetricIdentifier(_Wire):
    name: str = msgspec.field(default_factory=str)
    selector: LabelSelector | None = None


class MetricValue(_Wire):
    """A value of custom.metrics.k8s.io/v1beta2."""

    described_object: ObjectReference = msgspec.field(default_factory=ObjectReference)
    metric: MetricIdentifier = msgspec.field(default_factory=MetricIdentifier)
    timestamp: Time | None = msgspec.field(default_factory=lambda: None)
    window_seconds: Int64 | None = None
    value: Quantity = msgspec.field(default_factory=lambda: "0")


class MetricValueList(_Wire):
    kind: str = ""
    api_version: str = ""
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[MetricValue] = msgspec.field(default_factory=_empty_list)


class OldMetricValue(_Wire):
    """A value of custom.metrics.k8s.io/v1beta1."""

    described_object: ObjectReference = msgspec.field(default_factory=ObjectReference)
    metric_name: str = msgspec.field(default_factory=str)
    timestamp: Time | None = msgspec.field(default_factory=lambda: None)
    window: Int64 | None = None
    value: Quantity = msgspec.field(default_factory=lambda: "0")
    selector: LabelSelector | None = msgspec.field(default_factory=lambda: None)


class OldMetricValueList(_Wire):
    kind: str = ""
    api_version: str = ""
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[OldMetricValue] = msgspec.field(default_factory=_empty_list)


class ExternalMetricValue(_Wire):
    metric_name: str = msgspec.field(default_factory=str)
    metric_labels: dict[str, str] = msgspec.field(default_factory=_no_members)
    timestamp: Time | None = msgspec.field(default_factory=lambda: None)
    window: Int64 | None = None
    value: Quantity = msgspec.field(default_factory=lambda: "0")


class ExternalMetricValueList(_Wire):
    kind: str = ""
    api_version: str = ""
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[ExternalMetricValue] = msgspec.field(default_factory=_empty_list)


POD_METRICS: Final = APIResource(RESOURCE_METRICS, "v1beta1", "pods", "PodMetrics", PodMetrics)
NODE_METRICS: Final = APIResource(RESOURCE_METRICS, "v1beta1", "nodes", "NodeMetrics", NodeMetrics, namespaced=False)

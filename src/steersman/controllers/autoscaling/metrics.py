"""Client of the metrics APIs (podautoscaler/metrics/client.go, k8s.io/metrics/pkg/client)."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Final, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from steersman.api.autoscaling.v2 import CrossVersionObjectReference
from steersman.client.client import Client
from steersman.client.discovery import api_groups
from steersman.client.metrics_types import (
    CUSTOM_METRICS,
    EXTERNAL_METRICS,
    POD_METRICS,
    ExternalMetricValueList,
    MetricIdentifier,
    MetricValue,
    MetricValueList,
    OldMetricValue,
    OldMetricValueList,
    PodMetrics,
)
from steersman.client.transport import Unreachable
from steersman.controllers.autoscaling.replicas import NoProposal, PodMetric
from steersman.controllers.autoscaling.targets import Mapper, group_of
from steersman.machinery.codec.serializer import decoder
from steersman.machinery.errors.status import CAUSE_UNEXPECTED_SERVER_RESPONSE, StatusError
from steersman.machinery.values import times
from steersman.machinery.values.durations import DurationError, parse_duration
from steersman.machinery.values.quantity import Quantity, QuantityError
from steersman.work import simulated_time
from steersman.work.yielding import time_sliced

_MINUTE: Final = 60.0
_VERSION_GOOD_FOR: Final = 30.0
_KNOWN_VERSIONS: Final = ("v1beta2", "v1beta1")

T = TypeVar("T")


class _Items(msgspec.Struct):
    """A list whose objects are decoded in time slices, as it may have thousands."""

    items: list[msgspec.Raw] | None = None


class MetricsClient:
    """Requests metrics from one server. All methods raise NoProposal with upstream's texts."""

    def __init__(self, client: Client, mapper: Mapper) -> None:
        self._client = client
        self._mapper = mapper
        self._version: tuple[float, str] | None = None
        """Time of the last discovery, and the preferred version of custom metrics."""

    async def get_resource_metrics(
        self, namespace: str, selector: str, resource: str, container: str
    ) -> dict[str, PodMetric]:
        """Return the usage of a resource by pods or by one container of them, by the pods' names."""
        response = self._client.request("GET", POD_METRICS.path(namespace) + _query(labelSelector=selector))
        items = _decoded("resource", _Items, await _answer("resource", response, "pods.metrics.k8s.io"))
        if not items.items:
            raise NoProposal("no metrics returned from resource metrics API")
        values: dict[str, PodMetric] = {}
        async for raw in time_sliced(items.items):
            each = _decoded("resource", PodMetrics, bytes(raw))
            value = _usage(each, resource, container)
            if value is not None:
                values[each.metadata.name] = PodMetric(value, _unix(each.timestamp), _seconds(each.window))
        return values

    async def get_pod_metrics(
        self, namespace: str, selector: str, metric: str, metric_selector: str
    ) -> dict[str, PodMetric]:
        """Return a custom metric of pods, by their names."""
        query = _query(labelSelector=selector, metricLabelSelector=metric_selector)
        answer = await self._custom(namespace, "", "Pod", "*", metric, query)
        if not answer.items:
            raise NoProposal("no metrics returned from custom metrics API")
        values: dict[str, PodMetric] = {}
        for each in answer.items:
            seconds = _MINUTE if each.window_seconds is None else float(each.window_seconds)
            values[each.described_object.name] = PodMetric(_milli(each.value), _unix(each.timestamp), seconds)
        return values

    async def get_object_metric(
        self, namespace: str, of: CrossVersionObjectReference, metric: str, metric_selector: str
    ) -> int:
        """Return a custom metric of an object."""
        try:
            group = group_of(of.api_version)
        except NoProposal:
            group = ""
        query = _query(metricLabelSelector=metric_selector)
        values = await self._custom(namespace, group, of.kind, of.name, metric, query)
        if len(values.items) != 1:
            text = f"the custom metrics API server returned {len(values.items)} results when we asked for exactly one"
            raise NoProposal(f"unable to fetch metrics from custom metrics API: {text}")
        return _milli(values.items[0].value)

    async def get_external_metric(self, namespace: str, metric: str, selector: str) -> Sequence[int]:
        """Return the values of an external metric."""
        path = f"/apis/{EXTERNAL_METRICS}/v1beta1/namespaces/{_part(namespace)}/{_part(metric)}"
        response = self._client.request("GET", path + _query(labelSelector=selector))
        body = await _answer("external", response, f"{metric}.{EXTERNAL_METRICS}")
        values = _decoded("external", ExternalMetricValueList, body)
        if not values.items:
            raise NoProposal("no metrics returned from external metrics API")
        return [_milli(each.value) for each in values.items]

    async def _custom(
        self, namespace: str, group: str, kind: str, name: str, metric: str, query: str
    ) -> MetricValueList:
        version = await _answer("custom", self._custom_version(), CUSTOM_METRICS)
        if (group, kind) == ("", "Namespace"):
            plural, name, path = "metrics", metric, f"namespaces/{_part(namespace)}/metrics/{_part(metric)}"
        else:
            try:
                resource = await self._mapper.resource_of(group, kind)
            except (NoProposal, StatusError, Unreachable) as error:
                shown = f"{kind}.{group}" if group else kind
                text = f"unable to map kind {shown} to resource: {error}"
                raise NoProposal(f"unable to fetch metrics from custom metrics API: {text}") from None
            plural = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
            path = f"namespaces/{_part(namespace)}/{_part(plural)}/{_part(name)}/{_part(metric)}"
        response = self._client.request("GET", f"/apis/{CUSTOM_METRICS}/{version}/{path}{query}")
        body = await _answer("custom", response, f"{plural}.{CUSTOM_METRICS} {name}")
        if version == "v1beta2":
            return _decoded("custom", MetricValueList, body)
        return MetricValueList(items=[_converted(each) for each in _decoded("custom", OldMetricValueList, body).items])

    async def _custom_version(self) -> str:
        """Return the server's preferred version of custom metrics among the known versions."""
        now = simulated_time.time()
        if self._version is not None and now - self._version[0] < _VERSION_GOOD_FOR:
            return self._version[1]
        api_group = next((each for each in await api_groups(self._client) if each.name == CUSTOM_METRICS), None)
        if api_group is None:
            raise NoProposal(f"no custom metrics API ({CUSTOM_METRICS}) registered")
        versions = [each.version for each in (api_group.preferred_version, *(api_group.versions or ()))]
        version: str | None = next((each for each in versions if each in _KNOWN_VERSIONS), None)
        if version is None:
            raise NoProposal("no known available metric versions found")
        self._version = now, version
        return version


async def _answer(api: str, response: Awaitable[T], resource: str) -> T:
    try:
        return await response
    except StatusError as error:
        text = error.message
        if any(cause.reason == CAUSE_UNEXPECTED_SERVER_RESPONSE for cause in error.causes):
            text = f"{text} (get {resource})"
    except (NoProposal, Unreachable) as error:
        text = str(error)
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = "the response cannot be decoded"
    raise NoProposal(f"unable to fetch metrics from {api} metrics API: {text}")


def _decoded(api: str, cls: type[T], body: bytes) -> T:
    try:
        decoded: T = decoder(cls).decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise NoProposal(f"unable to fetch metrics from {api} metrics API: the response cannot be decoded") from None
    return decoded


def _converted(old: OldMetricValue) -> MetricValue:
    return MetricValue(
        described_object=old.described_object,
        metric=MetricIdentifier(name=old.metric_name, selector=old.selector),
        timestamp=old.timestamp,
        window_seconds=old.window,
        value=old.value,
    )


def _usage(metrics: PodMetrics, resource: str, container: str) -> int | None:
    """Return the usage of a pod, or of one container of it; None if it is unknown."""
    if container:
        texts = [each.usage.get(resource) for each in metrics.containers if each.name == container][:1]
    else:
        texts = [each.usage.get(resource) for each in metrics.containers]
    if not texts or None in texts:
        return None
    return sum(_milli(each) for each in texts if each is not None)


def _milli(text: str) -> int:
    try:
        return Quantity.of(text).as_milli()
    except QuantityError as error:
        raise NoProposal(str(error)) from None


def _unix(text: str | None) -> float:
    return 0.0 if text is None else float(times.unix(text))


def _seconds(text: str) -> float:
    try:
        return parse_duration(text) / 1e9
    except DurationError:
        return 0.0


def _part(text: str) -> str:
    return quote(text, safe="")


def _query(**parameters: str) -> str:
    present = {name: text for name, text in parameters.items() if text}
    return f"?{urlencode(present)}" if present else ""

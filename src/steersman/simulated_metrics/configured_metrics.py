"""The APIs custom.metrics.k8s.io and external.metrics.k8s.io, with values that users set.

They respond as adapters of monitoring systems do (sigs.k8s.io/custom-metrics-apiserver).

A custom metric of an object is its annotation `metrics.simulation.steersman.dev/NAME`. External metrics of a namespace
are in its ConfigMap `external-metrics`. Each line of a value is an amount, optionally after labels:
`queue=mail,zone=a 30`, or an expression after `=` (`queue=mail = curves.mail`). Further metrics are in the
configuration of the cluster (`nodes.load`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

from steersman.api.core.v1 import ObjectReference
from steersman.api.meta.v1 import PartialObjectMetadata
from steersman.catalogue.catalogue import Catalogue
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.metrics_types import (
    CUSTOM_METRICS,
    EXTERNAL_METRICS,
    ExternalMetricValue,
    ExternalMetricValueList,
    MetricIdentifier,
    MetricValue,
    MetricValueList,
    OldMetricValue,
    OldMetricValueList,
)
from steersman.client.resources import CONFIG_MAPS
from steersman.endpoints.negotiation import PROTOBUF, negotiate
from steersman.endpoints.request import Request
from steersman.endpoints.request_info import RequestInfo
from steersman.endpoints.responses import (
    encoded_response,
    error_response,
    method_not_allowed,
    pretty_wanted,
    unknown_resource,
)
from steersman.machinery.codec.serializer import encode_in_order
from steersman.machinery.errors.status import StatusError, bad_request
from steersman.machinery.selectors import labels
from steersman.machinery.selectors.labels import Selector, SelectorError
from steersman.machinery.values import times
from steersman.machinery.values.quantity import QuantityError, canonical
from steersman.net.message import Response
from steersman.nodes.load import Load
from steersman.work.offloading import offload

ANNOTATION: Final = "metrics.simulation.steersman.dev/"
CONFIG_MAP: Final = "external-metrics"
CUSTOM_VERSIONS: Final = ("v1beta1", "v1beta2")
EXTERNAL_VERSIONS: Final = ("v1beta1",)
_ALL: Final = "*"
_DEPTH: Final = 3
"""Slashes in the path of a group version."""
_MOST_LINES: Final = 1000
"""Values of one external metric; further ones are left out."""

Answer = MetricValueList | OldMetricValueList | ExternalMetricValueList | dict[str, Any]


class Subject(NamedTuple):
    """Subject of a request for a custom metric: objects of a resource (`PLURAL.GROUP`) in a namespace, and a metric."""

    namespace: str
    resource: str
    name: str
    metric: str


class ConfiguredMetrics:
    """Handlers of the paths below both APIs.

    `client` may read everything, as the request user was authorized before.
    """

    def __init__(self, client: Client, catalogue: Catalogue, load: Load) -> None:
        self._client = client
        self._catalogue = catalogue
        self._load = load

    async def custom(self, request: Request) -> Response:
        """Respond to a request below /apis/custom.metrics.k8s.io."""
        return await _answered(request, CUSTOM_METRICS, self._custom)

    async def external(self, request: Request) -> Response:
        """Respond to a request below /apis/external.metrics.k8s.io."""
        return await _answered(request, EXTERNAL_METRICS, self._external)

    async def _custom(self, request: Request) -> Answer:
        version = request.info.action.version
        subject = subject_of(request.info)
        if subject is None or version not in CUSTOM_VERSIONS:
            raise unknown_resource()
        selector = _selector(request, "labelSelector")
        resource = self._resource(subject)
        found: list[MetricValue] = []
        if _selector(request, "metricLabelSelector").matches({}):  # the values have no labels
            async for obj in self._objects(resource, subject, selector):
                said = obj.metadata.annotations.get(ANNOTATION + subject.metric, "")
                value = _amount(said)
                if value is None:
                    custom = self._load.custom
                    value = await offload(custom, subject.resource, subject.metric, obj.metadata, said)
                if value is not None:
                    found.append(_value_of(resource, obj, subject.metric, value))
        if not found:
            named = "" if subject.name == _ALL else f" {subject.name}"
            text = f"the server could not find the metric {subject.metric} for {subject.resource}{named}"
            raise StatusError(404, "NotFound", text)
        return _custom_list(version, found)

    def _resource(self, subject: Subject) -> APIResource[PartialObjectMetadata]:
        """Return the resource of a subject. Raises StatusError NotFound if it is not served."""
        plural, _, group = subject.resource.partition(".")
        entry = self._catalogue.entry(group, plural)
        if entry is None:
            raise unknown_resource()
        each = entry.resource
        if each.namespaced != bool(subject.namespace) and subject.resource != "namespaces":
            raise unknown_resource()
        return APIResource(group, each.version, plural, each.kind.name, PartialObjectMetadata, each.namespaced)

    async def _objects(self, resource: APIResource[PartialObjectMetadata], subject: Subject, selector: Selector) -> Any:
        if subject.name == _ALL:
            async for obj in self._client.iterate(resource, subject.namespace, label_selector=str(selector)):
                yield obj
        else:
            yield await self._client.get(resource, subject.name, subject.namespace)

    async def _external(self, request: Request) -> Answer:
        action = request.info.action
        version, namespace, metric = action.version, action.namespace, action.resource
        if not namespace or action.name or version not in EXTERNAL_VERSIONS:
            raise unknown_resource()
        selector = _selector(request, "labelSelector")
        found = await self._client.find(CONFIG_MAPS, CONFIG_MAP, namespace)
        data = {} if found is None else found.data
        now = times.now()
        values = await offload(self._external_values, namespace, metric, data.get(metric, ""))
        items = [
            ExternalMetricValue(metric_name=metric, metric_labels=of, timestamp=now, value=value)
            for of, value in values
            if selector.matches(of)
        ]
        return ExternalMetricValueList(
            kind="ExternalMetricValueList", api_version=f"{EXTERNAL_METRICS}/{version}", items=items
        )

    def _external_values(self, namespace: str, metric: str, text: str) -> list[tuple[dict[str, str], str]]:
        """Return the labels and amount of each value of a metric: of the ConfigMap, then of the configuration."""
        stored = external_values(text, partial(self._load.external_value, namespace, metric))
        return [*stored, *self._load.external(namespace, metric)]


def subject_of(info: RequestInfo) -> Subject | None:
    """Return the subject of a request, as it was authorized; None for a path without one."""
    action, depth = info.action, info.path.rstrip("/").count("/")
    if action.verb != "get" or not action.name:
        return None
    if action.namespace and action.resource == "metrics":
        subject = Subject("", "namespaces", action.namespace, action.name)
        return subject if depth == _DEPTH + 4 and not action.subresource else None
    subject = Subject(action.namespace, action.resource, action.name, action.subresource)
    return subject if depth == _DEPTH + (5 if action.namespace else 3) and action.subresource else None


def external_values(text: str, evaluate: Callable[[str], str | None]) -> Iterator[tuple[dict[str, str], str]]:
    """Yield the labels and amount of each line of a metric; lines without a valid amount are left out.

    `evaluate` returns the amount of an expression.
    """
    for line in text.split("\n", _MOST_LINES)[:_MOST_LINES]:
        before, separator, expression = f" {line}".partition(" = ")
        if separator:
            amount, words = evaluate(expression.strip(" ")), before.split(" ")
        else:
            *words, last = line.split(" ")
            amount = _amount(last)
        named = [each for each in words if each]
        if amount is None or len(named) > 1:
            continue
        pairs = [each.partition("=") for each in (named[0].split(",") if named else ())]
        if all(separator for _, separator, _ in pairs):
            yield {key: value for key, _, value in pairs}, amount


def resource_list(group: str, version: str) -> dict[str, Any]:
    """Return the discovery document of a group version. It lists no metrics, as they come and go with annotations."""
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/{version}", "resources": []}


async def _answered(request: Request, group: str, answer: Callable[[Request], Awaitable[Answer]]) -> Response:
    if request.method != "GET":
        return error_response(request, method_not_allowed())
    accepted = ",".join(each for each in request.headers.get("accept", "").split(",") if PROTOBUF not in each)
    try:
        wanted = negotiate(accepted, pretty=pretty_wanted(request))
        action = request.info.action
        found = await answer(request) if action.resource else resource_list(group, request.info.path.split("/")[3])
    except StatusError as error:
        return error_response(request, error)
    return encoded_response(encode_in_order(found), wanted)


def _selector(request: Request, parameter: str) -> Selector:
    try:
        return labels.parse(request.parameter(parameter) or "")
    except SelectorError as error:
        raise bad_request(str(error)) from None


def _amount(text: str) -> str | None:
    try:
        return canonical(text)
    except QuantityError:
        return None


def _value_of(
    resource: APIResource[PartialObjectMetadata], obj: PartialObjectMetadata, metric: str, value: str
) -> MetricValue:
    metadata = obj.metadata
    of = ObjectReference(
        kind=resource.kind,
        namespace=metadata.namespace,
        name=metadata.name,
        api_version=f"/{resource.version}" if not resource.group else resource.api_version,
    )
    return MetricValue(described_object=of, metric=MetricIdentifier(name=metric), timestamp=times.now(), value=value)


def _custom_list(version: str, found: list[MetricValue]) -> MetricValueList | OldMetricValueList:
    api_version = f"{CUSTOM_METRICS}/{version}"
    if version == "v1beta2":
        return MetricValueList(kind="MetricValueList", api_version=api_version, items=found)
    items = [
        OldMetricValue(
            described_object=each.described_object,
            metric_name=each.metric.name,
            timestamp=each.timestamp,
            value=each.value,
        )
        for each in found
    ]
    return OldMetricValueList(kind="MetricValueList", api_version=api_version, items=items)

"""Evaluation of one metric of an autoscaler: measurement, proposed replicas, and its status."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct

from steersman.api.autoscaling.v2 import (
    ContainerResourceMetricStatus,
    ExternalMetricSource,
    ExternalMetricStatus,
    MetricIdentifier,
    MetricSpec,
    MetricStatus,
    MetricTarget,
    MetricValueStatus,
    ObjectMetricSource,
    ObjectMetricStatus,
    PodsMetricSource,
    PodsMetricStatus,
    ResourceMetricStatus,
)
from steersman.api.core.v1 import Pod
from steersman.api.meta.v1 import LabelSelector
from steersman.controllers.autoscaling import replicas
from steersman.controllers.autoscaling.metrics import MetricsClient
from steersman.controllers.autoscaling.replicas import (
    Group,
    NoProposal,
    PodMetric,
    Proposal,
    Readiness,
    Target,
    Tolerances,
    UtilizationTarget,
)
from steersman.machinery.errors.field import quote
from steersman.machinery.selectors import labels
from steersman.machinery.selectors.labels import SelectorError
from steersman.machinery.values.quantity import BINARY_SI, DECIMAL_SI, Quantity, parse
from steersman.work.yielding import time_sliced

_PODS_PER_PART: Final = 500
"""Pods that are processed between two checks of the time slice."""


class Evaluated(NamedTuple):
    """Proposed replicas, the name of the metric for messages, and its status."""

    replicas: int
    name: str
    status: MetricStatus


class MetricFailed(Exception):
    """The evaluation of a metric failed.

    The text is that of the combined error; `reason` and `why` are for a condition and an event.
    """

    def __init__(self, text: str, reason: str, why: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.why = why


class ScaleTarget(Struct, frozen=True):
    """The scaled object: its desired and actual replicas, and its pods."""

    namespace: str
    desired: int
    actual: int
    selector: str
    pods: Callable[[], Sequence[Pod]]


class Evaluation:
    """Evaluates the metrics of one autoscaler at one moment."""

    def __init__(
        self, client: MetricsClient, scale_target: ScaleTarget, tolerances: Tolerances, readiness: Readiness
    ) -> None:
        self._client = client
        self._scale_target = scale_target
        self._tolerances = tolerances
        self._readiness = readiness

    async def evaluate(self, spec: MetricSpec) -> Evaluated:
        """Return the proposal of a metric. Raises MetricFailed."""
        if spec.type == "Object" and spec.object is not None:
            return await self._object(spec.object)
        if spec.type == "Pods" and spec.pods is not None:
            return await self._pods_metric(spec.pods)
        if spec.type == "Resource" and spec.resource is not None:
            resource = spec.resource
            try:
                proposal, value, name = await self._resource(resource.name, resource.target, "")
            except NoProposal as error:
                message = f"failed to get {resource.name} resource metric value: {error}"
                raise MetricFailed(message, "FailedGetResourceMetric", str(error)) from None
            resource_status = ResourceMetricStatus(name=resource.name, current=value)
            return Evaluated(proposal.replicas, name, MetricStatus(type="Resource", resource=resource_status))
        if spec.type == "ContainerResource" and spec.container_resource is not None:
            part = spec.container_resource
            try:
                proposal, value, name = await self._resource(part.name, part.target, part.container)
            except NoProposal as error:
                message = f"failed to get {part.container} container metric value: {error}"
                raise MetricFailed(message, "FailedGetContainerResourceMetric", str(error)) from None
            status = ContainerResourceMetricStatus(name=part.name, container=part.container, current=value)
            return Evaluated(proposal.replicas, name, MetricStatus(type="ContainerResource", container_resource=status))
        if spec.type == "External" and spec.external is not None:
            return await self._external(spec.external)
        text = f"unknown metric source type {quote(spec.type)}"
        raise MetricFailed(text, "InvalidMetricSourceType", text)

    # Usage of pods

    async def _resource(
        self, name: str, target: MetricTarget, container: str
    ) -> tuple[Proposal, MetricValueStatus, str]:
        wants_amount = target.average_value is not None
        if not wants_amount and target.average_utilization is None:
            kinds = "neither an average utilization target nor an average value (usage) target"
            raise NoProposal(f"invalid resource metric source: {kinds} was set")
        try:
            found = await self._usage(name, target, container)
        except NoProposal as error:
            raise NoProposal(f"failed to get {name} {'usage' if wants_amount else 'utilization'}: {error}") from None
        usage = str(Quantity(found.usage, -3, BINARY_SI if name == "memory" else DECIMAL_SI))
        value = MetricValueStatus(average_value=usage, average_utilization=found.utilization)
        if wants_amount:
            return found, value, f"{name} resource"
        scale_target = "container resource" if container else "resource"
        return found, value, f"{name} {scale_target} utilization (percentage of request)"

    async def _usage(self, name: str, target: MetricTarget, container: str) -> Proposal:
        scale_target = self._scale_target
        try:
            metrics = await self._client.get_resource_metrics(
                scale_target.namespace, scale_target.selector, name, container
            )
        except NoProposal as error:
            raise NoProposal(f"unable to get metrics for resource {name}: {error}") from None
        pods = self._pods()
        grouped = await self._grouped(pods, metrics, name)
        counted = replicas.counted_metrics(metrics, grouped)
        if target.average_value is not None:
            target_value = Target(_milli(target.average_value))
        else:
            requests: dict[str, int] = {}
            async for part in time_sliced(_parts(pods)):
                requests |= replicas.requests_of(part, container, name)
            target_value = UtilizationTarget(target.average_utilization or 0, requests)
        return replicas.propose_for_pods(scale_target.desired, counted, target_value, self._tolerances, grouped)

    async def _grouped(self, pods: Sequence[Pod], metrics: dict[str, PodMetric], resource: str) -> Group:
        """Return the pods grouped by readiness and metrics, in time slices."""
        groups: list[Group] = []
        async for part in time_sliced(_parts(pods)):
            groups.append(replicas.group(part, metrics, resource, self._readiness))
        return replicas.merged(groups)

    async def _pods_metric(self, source: PodsMetricSource) -> Evaluated:
        metric = source.metric
        try:
            selector = _selector(metric.selector)
            try:
                metrics = await self._client.get_pod_metrics(
                    self._scale_target.namespace, self._scale_target.selector, metric.name, selector
                )
            except NoProposal as error:
                raise NoProposal(f"unable to get metric {metric.name}: {error}") from None
            target = Target(_milli(source.target.average_value or "0"))
            grouped = await self._grouped(self._pods(), metrics, "")
            counted = replicas.counted_metrics(metrics, grouped)
            proposal = replicas.propose_for_pods(self._scale_target.desired, counted, target, self._tolerances, grouped)
        except NoProposal as error:
            message = f"failed to get pods metric value: {error}"
            raise MetricFailed(message, "FailedGetPodsMetric", str(error)) from None
        status = PodsMetricStatus(metric=_identifier(metric), current=_average(proposal.usage))
        return Evaluated(proposal.replicas, f"pods metric {metric.name}", MetricStatus(type="Pods", pods=status))

    def _pods(self) -> Sequence[Pod]:
        pods = self._scale_target.pods()
        if not pods:
            raise NoProposal("no pods returned by selector while calculating replica count")
        return pods

    # Other values

    async def _object(self, source: ObjectMetricSource) -> Evaluated:
        metric, target = source.metric, source.target
        try:
            selector = _selector(metric.selector)
            if target.type == "Value" and target.value is not None:
                usage = await self._of_object(source, selector)
                proposal = replicas.propose_for_value(
                    self._scale_target.desired, usage, _milli(target.value), self._tolerances, self._scale_target.pods
                )
                value, name = _value(proposal.usage), f"{source.described_object.kind} metric {metric.name}"
            elif target.type == "AverageValue" and target.average_value is not None:
                proposal = await self._object_per_pod(source, selector, _milli(target.average_value))
                value, name = _average(proposal.usage), f"external metric {metric.name}({as_go(metric.selector)})"
            else:
                kinds = "neither a value target nor an average value target"
                raise NoProposal(f"invalid object metric source: {kinds} was set")
        except NoProposal as error:
            raise _object_failed(str(error), str(error)) from None
        status = ObjectMetricStatus(metric=_identifier(metric), current=value, described_object=source.described_object)
        return Evaluated(proposal.replicas, name, MetricStatus(type="Object", object=status))

    async def _object_per_pod(self, source: ObjectMetricSource, selector: str, target: int) -> Proposal:
        try:
            usage = await self._of_object(source, selector)
        except NoProposal as error:
            raise _object_failed(f"failed to get {source.metric.name} object metric: {error}", str(error)) from None
        return replicas.propose_for_value_per_pod(self._scale_target.actual, usage, target, self._tolerances)

    async def _of_object(self, source: ObjectMetricSource, selector: str) -> int:
        scale_target, namespace = source.described_object, self._scale_target.namespace
        try:
            return await self._client.get_object_metric(namespace, scale_target, source.metric.name, selector)
        except NoProposal as error:
            text = f"unable to get metric {source.metric.name}: {scale_target.kind} on {namespace} {scale_target.name}/{error}"
            raise NoProposal(text) from None

    async def _external(self, source: ExternalMetricSource) -> Evaluated:
        metric, target = source.metric, source.target
        per_pod = target.average_value is not None
        try:
            if not per_pod and target.value is None:
                kinds = "neither a value target nor an average value target"
                raise NoProposal(f"invalid external metric source: {kinds} was set")
            try:
                usage = await self._external_usage(metric)
                proposal = self._of_external(usage, target)
            except NoProposal as error:
                text = f"failed to get {metric.name} external metric: {error}"
                why = text if per_pod else f"failed to get external metric {metric.name}: {error}"
                raise _external_failed(metric.name, why, str(error)) from None
        except NoProposal as error:
            raise _external_failed(metric.name, str(error), str(error)) from None
        value = _average(proposal.usage) if per_pod else _value(proposal.usage)
        status = ExternalMetricStatus(metric=_identifier(metric), current=value)
        name = f"external metric {metric.name}({as_go(metric.selector)})"
        return Evaluated(proposal.replicas, name, MetricStatus(type="External", external=status))

    async def _external_usage(self, metric: MetricIdentifier) -> int:
        namespace, selector = self._scale_target.namespace, _selector(metric.selector)
        try:
            return replicas.total(await self._client.get_external_metric(namespace, metric.name, selector))
        except NoProposal as error:
            where = f"{namespace}/{metric.name}/{as_go(metric.selector)}"
            raise NoProposal(f"unable to get external metric {where}: {error}") from None

    def _of_external(self, usage: int, target: MetricTarget) -> Proposal:
        scale_target = self._scale_target
        if target.average_value is not None:
            return replicas.propose_for_value_per_pod(
                scale_target.actual, usage, _milli(target.average_value), self._tolerances
            )
        return replicas.propose_for_value(
            scale_target.desired, usage, _milli(target.value or "0"), self._tolerances, scale_target.pods
        )


def _parts(pods: Sequence[Pod]) -> Iterator[Sequence[Pod]]:
    for start in range(0, len(pods), _PODS_PER_PART):
        yield pods[start : start + _PODS_PER_PART]


def _object_failed(text: str, why: str) -> MetricFailed:
    return MetricFailed(f"failed to get object metric value: {text}", "FailedGetObjectMetric", why)


def _external_failed(name: str, text: str, why: str) -> MetricFailed:
    return MetricFailed(f"failed to get {name} external metric value: {text}", "FailedGetExternalMetric", why)


def _identifier(metric: MetricIdentifier) -> MetricIdentifier:
    return MetricIdentifier(name=metric.name, selector=metric.selector)


def _average(usage: int) -> MetricValueStatus:
    return MetricValueStatus(average_value=str(Quantity(usage, -3)))


def _value(usage: int) -> MetricValueStatus:
    return MetricValueStatus(value=str(Quantity(usage, -3)))


def _milli(text: str) -> int:
    return parse(text).as_milli()


def _selector(selector: LabelSelector | None) -> str:
    try:
        return str(labels.from_label_selector(selector))
    except SelectorError as error:
        raise NoProposal(str(error)) from None


def as_go(selector: LabelSelector | None) -> str:
    """Return a selector as Go prints it, for names of metrics and errors."""
    if selector is None:
        return "nil"
    pairs: dict[str, Any] = dict(selector.match_labels)
    mapped = "".join(f"{key}: {pairs[key]}," for key in sorted(pairs))
    requirements = "".join(
        f"LabelSelectorRequirement{{Key:{each.key},Operator:{each.operator},Values:[{' '.join(each.values)}],}},"
        for each in selector.match_expressions
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{mapped}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{requirements}}},}}"
    )

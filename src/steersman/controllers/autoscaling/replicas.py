"""Calculation of replicas from measured values (podautoscaler's replica_calculator.go).

Values of metrics are in thousandths throughout, as `Quantity.as_milli` returns them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from steersman.api.core.v1 import Pod
from steersman.machinery.built_in.pod_resources import is_pod_level_resource, is_sidecar, requests_of_spec
from steersman.machinery.built_in.pod_state import is_ready
from steersman.machinery.values import times
from steersman.machinery.values.conditions import find_condition
from steersman.machinery.values.quantity import parse

MOST: Final = 2**31 - 1
_INT64: Final = 2**63 - 1
_CPU: Final = "cpu"


class NoProposal(Exception):
    """No number of replicas follows from the measurements. The text is upstream's."""


class Tolerances(Struct, frozen=True):
    """Deviations of the usage from its target that are ignored, as fractions of the target."""

    down: float
    up: float

    def are_met(self, ratio: float) -> bool:
        """Return True if the ratio of usage to target is within the tolerances."""
        return 1.0 - self.down <= ratio <= 1.0 + self.up


class PodMetric(Struct, frozen=True):
    """Measurement of a pod; `at` is in seconds since 1970, `window` in seconds."""

    value: int
    at: float = 0.0
    window: float = 0.0


class Readiness(NamedTuple):
    """Parameters that decide if the CPU usage of a pod counts; `now` is in seconds since 1970, the others are in
    seconds.
    """

    now: float
    initialization: float
    """Time after a pod's start during which its usage counts only if it was ready for the whole window."""
    initial_delay: float
    """Time after a pod's start: an unready pod whose readiness changed last within it has never been ready."""


class Proposal(NamedTuple):
    """Proposed replicas and the usage they follow from; for utilization, also the percentage."""

    replicas: int
    usage: int
    utilization: int | None = None


class Group(Struct, frozen=True):
    """Pods of a target: the number of ready ones, and the names of those that are unready, without metrics, or ignored."""

    ready: int
    unready: frozenset[str]
    missing: frozenset[str]
    ignored: frozenset[str]


def merged(groups: Sequence[Group]) -> Group:
    """Return the union of groups."""
    return Group(
        sum(each.ready for each in groups),
        frozenset().union(*(each.unready for each in groups)),
        frozenset().union(*(each.missing for each in groups)),
        frozenset().union(*(each.ignored for each in groups)),
    )


def group(pods: Iterable[Pod], metrics: Mapping[str, PodMetric], resource: str, readiness: Readiness) -> Group:
    """Group pods by readiness and metrics; `resource` is "" for metrics that are not of a resource."""
    ready, unready, missing, ignored = 0, set[str](), set[str](), set[str]()
    for pod in pods:
        name = pod.metadata.name
        if pod.metadata.deletion_timestamp or pod.status.phase == "Failed":
            ignored.add(name)
        elif pod.status.phase == "Pending":
            unready.add(name)
        elif (metric := metrics.get(name)) is None:
            missing.add(name)
        elif resource == _CPU and _is_unready(pod, metric, readiness):
            unready.add(name)
        else:
            ready += 1
    return Group(ready, frozenset(unready), frozenset(missing), frozenset(ignored))


def _is_unready(pod: Pod, metric: PodMetric, readiness: Readiness) -> bool:
    condition = find_condition(pod.status.conditions, "Ready")
    if condition is None or not pod.status.start_time:
        return True
    started = times.unix(pod.status.start_time)
    since = times.unix(condition.last_transition_time) if condition.last_transition_time else 0
    if started + readiness.initialization > readiness.now:
        return condition.status == "False" or metric.at < since + metric.window
    return condition.status == "False" and started + readiness.initial_delay > since


def requests_of(pods: Iterable[Pod], container: str, resource: str) -> dict[str, int]:
    """Return the request of each pod for a resource, or of its `container`, by the pod's name. Raises NoProposal."""
    return {pod.metadata.name: _request_of(pod, container, resource) for pod in pods}


def _request_of(pod: Pod, container: str, resource: str) -> int:
    name = pod.metadata.name
    pod_resources = pod.spec.resources
    if not container and pod_resources is not None and any(map(is_pod_level_resource, pod_resources.requests)):
        amount = requests_of_spec(pod.spec).get(resource)
        if amount is None:
            raise NoProposal(f"missing pod-level request for {resource} in Pod {name}")
        return amount.as_milli()
    total = 0
    for each in (*(pod.spec.containers or ()), *filter(is_sidecar, pod.spec.init_containers)):
        if container in ("", each.name):
            request = each.resources.requests.get(resource)
            if request is None:
                raise NoProposal(f"missing request for {resource} in container {each.name} of Pod {name}")
            total += parse(request).as_milli()
            if container:
                return total
    if container:
        raise NoProposal(f"container {container} not found in Pod {name}")
    return total


class _Usage(Struct, frozen=True):
    """Ratio of usage to target, and the usage."""

    ratio: float
    usage: int
    utilization: int | None = None


class Target:
    """Target of usage: an amount for each pod."""

    def __init__(self, amount: int) -> None:
        self._amount = amount

    def usage(self, metrics: Mapping[str, PodMetric]) -> _Usage:
        """Return the usage relative to the target. Raises NoProposal."""
        average = quotient(sum(each.value for each in metrics.values()), len(metrics))
        return _Usage(average / self._amount, average)

    def assumed_usage(self, name: str) -> int:
        """Return the assumed usage of a pod without metrics, when scaling down."""
        return self._amount


class UtilizationTarget(Target):
    """Target of usage: a percentage of the pods' requests."""

    def __init__(self, percentage: int, requests: Mapping[str, int]) -> None:
        super().__init__(percentage)
        self._requests = requests

    def usage(self, metrics: Mapping[str, PodMetric]) -> _Usage:
        measured = [name for name in metrics if name in self._requests]
        requested = sum(self._requests[name] for name in measured)
        if not requested:
            raise NoProposal("no metrics returned matched known pods")
        used = sum(metrics[name].value for name in measured)
        utilization = quotient(used * 100, requested)
        return _Usage(utilization / self._amount, quotient(used, len(measured)), utilization)

    def assumed_usage(self, name: str) -> int:
        return quotient(self._requests[name] * max(100, self._amount), 100)


def counted_metrics(metrics: Mapping[str, PodMetric], grouped: Group) -> dict[str, PodMetric]:
    """Return the metrics of the pods that count. Raises NoProposal if there are none."""
    left_out = grouped.ignored | grouped.unready
    counted = {name: metric for name, metric in metrics.items() if name not in left_out}
    if not counted:
        raise NoProposal("did not receive metrics for targeted pods (pods might be unready)")
    return counted


def propose_for_pods(
    current: int, counted_metrics: Mapping[str, PodMetric], target: Target, tolerances: Tolerances, grouped: Group
) -> Proposal:
    """Return the replicas proposed by the usage of pods; `counted_metrics` are the metrics of the pods that count.

    Pods without metrics are assumed to have the usage that changes least: their target when scaling down, 0 when
    scaling up. When scaling up, unready pods are assumed to have usage 0 too. Raises NoProposal.
    """
    metrics = dict(counted_metrics)
    usage = target.usage(metrics)
    stays = Proposal(current, usage.usage, usage.utilization)
    adds_beside_unready = bool(grouped.unready) and usage.ratio > 1.0
    if not adds_beside_unready and not grouped.missing:
        if tolerances.are_met(usage.ratio):
            return stays
        return stays._replace(replicas=_rounded_up(usage.ratio * grouped.ready))
    if usage.ratio < 1.0:
        metrics |= {name: PodMetric(target.assumed_usage(name)) for name in grouped.missing}
    elif usage.ratio > 1.0:
        metrics |= dict.fromkeys(grouped.missing, PodMetric(0))
    if adds_beside_unready:
        metrics |= dict.fromkeys(grouped.unready, PodMetric(0))
    ratio = target.usage(metrics).ratio
    turns = (usage.ratio < 1.0 < ratio) or (usage.ratio > 1.0 > ratio)
    if tolerances.are_met(ratio) or turns:
        return stays
    replicas = _rounded_up(ratio * len(metrics))
    if (ratio < 1.0 and replicas > current) or (ratio > 1.0 and replicas < current):
        return stays
    return stays._replace(replicas=replicas)


def propose_for_value(
    current: int, usage: int, target: int, tolerances: Tolerances, pods_of: Callable[[], Sequence[Pod]]
) -> Proposal:
    """Return the replicas proposed by a value that does not belong to pods, relative to a total target. Raises
    NoProposal.
    """
    ratio = usage / target
    if tolerances.are_met(ratio):
        return Proposal(current, usage)
    pods = pods_of()
    if not pods:
        text = "no pods returned by selector while calculating replica count"
        raise NoProposal(f"unable to calculate ready pods: {text}")
    ready = sum(pod.status.phase == "Running" and is_ready(pod) for pod in pods)
    return Proposal(_rounded_up(ratio * ready), usage)


def propose_for_value_per_pod(replicas: int, usage: int, target: int, tolerances: Tolerances) -> Proposal:
    """Return the replicas proposed by a value relative to a target for each of the `replicas` present."""
    desired = replicas
    if not tolerances.are_met(_float_quotient(usage, target * replicas)):
        desired = _rounded_up(usage / target)
    return Proposal(desired, _whole_64(_float_quotient(usage, replicas)))


def total(values: Iterable[int]) -> int:
    """Return the sum of values, at most the largest int64."""
    return min(sum(values), _INT64)


def quotient(dividend: int, divisor: int) -> int:
    """Return an integer quotient, truncated towards zero as in Go."""
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def _float_quotient(dividend: int, divisor: int) -> float:
    """Return a float quotient as in Go, which may be infinite or NaN."""
    if divisor:
        return dividend / divisor
    return math.nan if not dividend else math.copysign(math.inf, dividend)


def _rounded_up(number: float) -> int:
    return MOST if number > MOST else math.ceil(number)


def _whole_64(number: float) -> int:
    """Return the number as an int64; infinite numbers and NaN become the value that Go has on most machines."""
    if not math.isfinite(number):
        return -_INT64 - 1
    return _INT64 if number >= _INT64 else math.ceil(number)

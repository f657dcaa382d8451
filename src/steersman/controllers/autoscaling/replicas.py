"""How many replicas measurements ask for: decided of values alone (podautoscaler's replica_calculator.go).

Values of metrics are in thousandths throughout, as `Quantity.as_milli` gives them.
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
    """Nothing can be said of what was measured; the text says why, in upstream's words."""


class Tolerances(Struct, frozen=True):
    """How far usage may be off its target, as a part of that, without anything being done."""

    down: float
    up: float

    def are_met(self, ratio: float) -> bool:
        """`ratio` is that of the usage to its target."""
        return 1.0 - self.down <= ratio <= 1.0 + self.up


class PodMetric(Struct, frozen=True):
    """What was measured of a pod; `at` is in seconds since 1970, `window` in seconds."""

    value: int
    at: float = 0.0
    window: float = 0.0


class Readiness(NamedTuple):
    """When cpu usage of pods counts; `now` is in seconds since 1970, the others are lengths of time in seconds."""

    now: float
    initialization: float
    """After its start a pod's usage counts only if it is ready and was for the whole window."""
    initial_delay: float
    """A pod that became unready within this time after its start has never been ready."""


class Proposal(NamedTuple):
    """A number of replicas, and the usage that it follows from; of utilization the percentage too."""

    replicas: int
    usage: int
    utilization: int | None = None


class Group(Struct, frozen=True):
    """The pods of a target: how many count, and the names of those that do not yet, or of which nothing is known."""

    ready: int
    unready: frozenset[str]
    missing: frozenset[str]
    ignored: frozenset[str]


def merged(groups: Sequence[Group]) -> Group:
    """The pods of all groups."""
    return Group(
        sum(each.ready for each in groups),
        frozenset().union(*(each.unready for each in groups)),
        frozenset().union(*(each.missing for each in groups)),
        frozenset().union(*(each.ignored for each in groups)),
    )


def group(pods: Iterable[Pod], metrics: Mapping[str, PodMetric], resource: str, readiness: Readiness) -> Group:
    """Sorts pods by what can be said of them; `resource` is "" for other metrics than those of resources."""
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
    """What each pod asks for of a resource, or its `container` if one is named. Raises NoProposal."""
    return {pod.metadata.name: _request_of(pod, container, resource) for pod in pods}


def _request_of(pod: Pod, container: str, resource: str) -> int:
    name = pod.metadata.name
    whole = pod.spec.resources
    if not container and whole is not None and any(map(is_pod_level_resource, whole.requests)):
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
    """What usage is to its target, and the usage itself."""

    ratio: float
    usage: int
    utilization: int | None = None


class Target:
    """What usage is held against: an amount for each pod."""

    def __init__(self, amount: int) -> None:
        self._amount = amount

    def usage(self, metrics: Mapping[str, PodMetric]) -> _Usage:
        """Raises NoProposal."""
        average = quotient(sum(each.value for each in metrics.values()), len(metrics))
        return _Usage(average / self._amount, average)

    def of_missing(self, name: str) -> int:
        """How much a pod counts for of which nothing is known, before others are taken away."""
        return self._amount


class UtilizationTarget(Target):
    """The same as a percentage of what pods ask for."""

    def __init__(self, percentage: int, requests: Mapping[str, int]) -> None:
        super().__init__(percentage)
        self._requests = requests

    def usage(self, metrics: Mapping[str, PodMetric]) -> _Usage:
        known = [name for name in metrics if name in self._requests]
        asked = sum(self._requests[name] for name in known)
        if not asked:
            raise NoProposal("no metrics returned matched known pods")
        used = sum(metrics[name].value for name in known)
        utilization = quotient(used * 100, asked)
        return _Usage(utilization / self._amount, quotient(used, len(known)), utilization)

    def of_missing(self, name: str) -> int:
        return quotient(self._requests[name] * max(100, self._amount), 100)


def counted(metrics: Mapping[str, PodMetric], grouped: Group) -> dict[str, PodMetric]:
    """The metrics of pods that count. Raises NoProposal where there are none."""
    left_out = grouped.ignored | grouped.unready
    found = {name: metric for name, metric in metrics.items() if name not in left_out}
    if not found:
        raise NoProposal("did not receive metrics for targeted pods (pods might be unready)")
    return found


def of_pods(
    current: int, counted: Mapping[str, PodMetric], target: Target, tolerances: Tolerances, grouped: Group
) -> Proposal:
    """What the usage of pods asks for, by the metrics of those that count. Pods of which nothing is known are taken for
    what changes least: for as much as is wanted before others are taken away, for nothing before others are added, as
    are those that are not ready.

    Raises NoProposal.
    """
    metrics = dict(counted)
    found = target.usage(metrics)
    stays = Proposal(current, found.usage, found.utilization)
    adds_beside_unready = bool(grouped.unready) and found.ratio > 1.0
    if not adds_beside_unready and not grouped.missing:
        if tolerances.are_met(found.ratio):
            return stays
        return stays._replace(replicas=_whole(found.ratio * grouped.ready))
    if found.ratio < 1.0:
        metrics |= {name: PodMetric(target.of_missing(name)) for name in grouped.missing}
    elif found.ratio > 1.0:
        metrics |= dict.fromkeys(grouped.missing, PodMetric(0))
    if adds_beside_unready:
        metrics |= dict.fromkeys(grouped.unready, PodMetric(0))
    ratio = target.usage(metrics).ratio
    turns = (found.ratio < 1.0 < ratio) or (found.ratio > 1.0 > ratio)
    if tolerances.are_met(ratio) or turns:
        return stays
    replicas = _whole(ratio * len(metrics))
    if (ratio < 1.0 and replicas > current) or (ratio > 1.0 and replicas < current):
        return stays
    return stays._replace(replicas=replicas)


def of_value(
    current: int, usage: int, target: int, tolerances: Tolerances, pods_of: Callable[[], Sequence[Pod]]
) -> Proposal:
    """What a value asks for that is no pod's, held against its target as a whole. Raises NoProposal."""
    ratio = usage / target
    if tolerances.are_met(ratio):
        return Proposal(current, usage)
    pods = pods_of()
    if not pods:
        text = "no pods returned by selector while calculating replica count"
        raise NoProposal(f"unable to calculate ready pods: {text}")
    ready = sum(pod.status.phase == "Running" and is_ready(pod) for pod in pods)
    return Proposal(_whole(ratio * ready), usage)


def of_value_per_pod(replicas: int, usage: int, target: int, tolerances: Tolerances) -> Proposal:
    """The same, held against a target for each of the `replicas` that there are."""
    wanted = replicas
    if not tolerances.are_met(_float_quotient(usage, target * replicas)):
        wanted = _whole(usage / target)
    return Proposal(wanted, _whole_64(_float_quotient(usage, replicas)))


def total(values: Iterable[int]) -> int:
    """The sum of values, at most an int64."""
    return min(sum(values), _INT64)


def quotient(dividend: int, divisor: int) -> int:
    """A quotient of whole numbers without its fraction, as Go has it."""
    found = abs(dividend) // abs(divisor)
    return found if (dividend < 0) == (divisor < 0) else -found


def _float_quotient(dividend: int, divisor: int) -> float:
    """A quotient of floats as Go has it, which may be infinite or no number."""
    if divisor:
        return dividend / divisor
    return math.nan if not dividend else math.copysign(math.inf, dividend)


def _whole(number: float) -> int:
    return MOST if number > MOST else math.ceil(number)


def _whole_64(number: float) -> int:
    """An int64; of what is none, what Go makes of it on most machines."""
    if not math.isfinite(number):
        return -_INT64 - 1
    return _INT64 if number >= _INT64 else math.ceil(number)

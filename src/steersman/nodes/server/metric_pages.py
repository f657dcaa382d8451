"""Pages of metrics that Metric objects of kwok define, in the text format of Prometheus (kwok `pkg/kwok/metrics`)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from steersman.api.core.v1 import Container, Node, Pod
from steersman.client.api_resource import APIResource
from steersman.client.errors import ignoring, is_not_found
from steersman.client.resources import NODES
from steersman.net.message import Request, Response
from steersman.nodes.kwok.pod_objects import GROUP, VERSION
from steersman.nodes.server.kubelet import Kubelet
from steersman.nodes.usage import NANO
from steersman.work.offloading import offload_if
from steersman.work.threads import give_way

if TYPE_CHECKING:
    from steersman.nodes.kwok.expressions import UsageExpressions

_METRICS: Final[APIResource[dict[str, Any]]] = APIResource(GROUP, VERSION, "metrics", "Metric", dict, namespaced=False)
_MOST_METRICS: Final = 1000
_MOST_SERIES: Final = 50_000
"""Series of a page."""
_MOST_LABEL: Final = 4096
_is_name: Final = re.compile("[a-zA-Z_:][a-zA-Z0-9_:]{0,199}", re.ASCII).fullmatch


class _Label(msgspec.Struct, frozen=True):
    name: str = ""
    value: str = ""


class _Bucket(msgspec.Struct, frozen=True):
    le: float = 0.0
    value: str = ""
    hidden: bool = False


class _Metric(msgspec.Struct, frozen=True):
    name: str = ""
    help: str = ""
    kind: str = ""
    labels: tuple[_Label, ...] | None = None
    value: str = ""
    buckets: tuple[_Bucket, ...] | None = None
    dimension: str = "node"


class _Spec(msgspec.Struct, frozen=True):
    path: str = ""
    metrics: tuple[_Metric, ...] | None = None


async def metrics_page(kubelet: Kubelet, request: Request) -> Response | None:
    """Return the page of the Metric objects with the path of a request; None if there are none."""
    found: list[_Metric] = []
    with ignoring(is_not_found):
        for each in (await kubelet.client.list(_METRICS)).items:
            try:
                spec = msgspec.convert(each.get("spec") or {}, _Spec)
            except msgspec.ValidationError:
                continue  # an object that somebody's own definition has let through
            if spec.path.replace("{nodeName}", kubelet.node.name) == request.path:
                found += spec.metrics or ()
    if not found:
        return None
    node = await kubelet.client.find(NODES, kubelet.node.name)
    shown = await offload_if(True, _page, kubelet, node, found[:_MOST_METRICS])
    return Response(200, [("content-type", "text/plain; version=0.0.4; charset=utf-8")], shown)


def _page(kubelet: Kubelet, node: Node | None, metrics: Sequence[_Metric]) -> bytes:
    writer = _Writer(kubelet, node)
    lines: list[str] = []
    for each in metrics:
        if not _is_name(each.name):
            continue
        lines.append(f"# HELP {each.name} {_escaped(each.help.strip(' '))}")
        lines.append(f"# TYPE {each.name} {each.kind}")
        lines += writer.series(each)
    return ("\n".join(lines) + "\n").encode()


class _Writer:
    """Writer of the series of one node."""

    def __init__(self, kubelet: Kubelet, node: Node | None) -> None:
        from steersman.nodes.kwok.expressions import UsageExpressions, functions_of_usage

        self._kubelet = kubelet
        self._node = node
        self._pods = [each for each in kubelet.all_pods() if each.status.phase == "Running"]
        self._left = _MOST_SERIES
        self._expressions: UsageExpressions = UsageExpressions(
            functions_of_usage(self._usage, self._total, lambda _: float(self._started()))
        )

    def series(self, metric: _Metric) -> Iterator[str]:
        """Yield the lines of a metric."""
        from steersman.nodes.kwok.expressions import variables_of

        for pod, container in self._objects(metric.dimension):
            give_way()
            variables = variables_of(self._node, pod, container)
            labels = self._labels(metric, variables)
            if labels is None or self._left <= 0:
                continue
            self._left -= 1
            if metric.kind == "histogram":
                yield from self._histogram(metric, labels, variables)
                continue
            value = self._expressions.number(metric.value, variables)
            if not isinstance(value, str):
                yield f"{metric.name}{_braces(labels)} {_number(value)}"

    def _objects(self, dimension: str) -> Iterator[tuple[Pod | None, Container | None]]:
        if dimension == "node":
            yield None, None
        for pod in self._pods if dimension in ("pod", "container") else ():
            if dimension == "pod":
                yield pod, None
            else:
                yield from ((pod, each) for each in pod.spec.containers or ())

    def _labels(self, metric: _Metric, variables: Mapping[str, Any]) -> dict[str, str] | None:
        """Return the labels of a series; None if one has no value."""
        found: dict[str, str] = {}
        for each in sorted(metric.labels or (), key=lambda label: label.name):
            value = self._expressions.label(each.value, variables)
            if not isinstance(value, str) or not _is_name(each.name):
                return None
            found[each.name] = value[:_MOST_LABEL]
        return found

    def _histogram(self, metric: _Metric, labels: dict[str, str], variables: Mapping[str, Any]) -> Iterator[str]:
        count, total = 0, 0.0
        for each in sorted(metric.buckets or (), key=lambda bucket: bucket.le):
            value = self._expressions.number(each.value, variables)
            if isinstance(value, str):
                return
            count += int(value)
            total += each.le * int(value)
            if not each.hidden:
                yield f"{metric.name}_bucket{_braces({**labels, 'le': _number(each.le)})} {count}"
            self._left -= 1
        yield f"{metric.name}_bucket{_braces({**labels, 'le': '+Inf'})} {count}"
        yield f"{metric.name}_sum{_braces(labels)} {_number(total)}"
        yield f"{metric.name}_count{_braces(labels)} {count}"

    # Functions of expressions

    def _usage(self, of: Any, resource: str, container: str | None) -> float:
        usages, found = self._kubelet.containers.usages, 0.0
        for pod in self._of(of):
            for each in usages.of(pod):
                if container in (None, each.container):
                    found += {"cpu": each.cpu / NANO, "memory": float(each.memory)}.get(resource, 0.0)
        return found

    def _total(self, of: Any, resource: str, container: str | None) -> float:
        usages, found = self._kubelet.containers.usages, 0.0
        for pod in self._of(of) if resource == "cpu" else ():
            parts = [each for each in usages.of(pod) if container in (None, each.container)]
            found += usages.total(pod, parts).core_nano_seconds / NANO
        return found

    def _of(self, of: Any) -> Sequence[Pod]:
        if isinstance(of, Pod):
            return [of]
        return self._pods if isinstance(of, Node) and of.metadata.name == self._kubelet.node.name else ()

    def _started(self) -> int:
        return sum(
            each.restart_count + 1
            for pod in self._kubelet.all_pods()
            for each in pod.status.container_statuses
            if each.state.waiting is None or each.restart_count
        )


def _braces(labels: Mapping[str, str]) -> str:
    inside = ",".join(f'{name}="{_escaped(value, quotes=True)}"' for name, value in labels.items())
    return f"{{{inside}}}" if inside else ""


def _escaped(value: str, *, quotes: bool = False) -> str:
    shown = value.replace("\\", "\\\\").replace("\n", "\\n")
    return shown.replace('"', '\\"') if quotes else shown


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if value != value else "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))

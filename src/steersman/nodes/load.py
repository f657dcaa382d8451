"""Simulated load: usage of containers and values of metrics, from expressions over curves, noise and the time.

Expressions are in the configuration of the cluster, and in annotations of pods, in place of a quantity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from steersman.api.core.v1 import Container, Pod
from steersman.api.meta.v1 import ObjectMeta, OwnerReference
from steersman.machinery.selectors.labels import EVERYTHING, Selector
from steersman.machinery.values import times
from steersman.machinery.values.quantity import QuantityError, canonical, nanos
from steersman.nodes.behaviour import PREFIX
from steersman.nodes.curves import Curve, noise
from steersman.nodes.usage import NANO, bounded, number_of
from steersman.work.first_use import import_offloaded
from steersman.work.offloading import begin_task

if TYPE_CHECKING:  # slow to import, and needed only for expressions
    from steersman.nodes.load_expressions import LoadExpressions

_MODULE: Final = "steersman.nodes.load_expressions"


class Objects(NamedTuple):
    """Choice of objects by namespace ("" for all), labels and, for containers of pods, a name ("" for all)."""

    namespace: str = ""
    selector: Selector = EVERYTHING
    container: str = ""

    def include(self, metadata: ObjectMeta, container: str = "") -> bool:
        """Return True for an object among these."""
        return (
            self.namespace in ("", metadata.namespace)
            and self.container in ("", container)
            and self.selector.matches(metadata.labels)
        )


class UsageRule(NamedTuple):
    """Expressions of the usage of containers, by resource."""

    of: Objects
    expressions: Mapping[str, str]


class MetricRule(NamedTuple):
    """Expression of a custom metric of objects, or of an external metric."""

    name: str
    of: Objects
    value: str
    resource: str = ""
    """Resource of a custom metric, as `PLURAL.GROUP`; "" for an external metric."""
    labels: Mapping[str, str] = {}
    """Labels of an external metric."""


class CountReplicas(Protocol):
    """Count of the pods that share the load."""

    def __call__(self, controller: str) -> int:
        """Return the number of running pods with a controller of this UID."""
        ...


class Load:
    """The load of a cluster: a source of the usage of containers, and of values of metrics."""

    def __init__(
        self,
        curves: Mapping[str, Curve] | None = None,
        usage: Sequence[UsageRule] = (),
        metrics: Sequence[MetricRule] = (),
        *,
        seed: int = 0,
    ) -> None:
        """Create the load of a cluster. Of several rules for an object, the first one counts.

        Raises ValueError for an expression that cannot be compiled.
        """
        self.curves: Final = dict(curves or {})
        self._usage = usage
        self._metrics = metrics
        self._seed = seed
        self._expressions: LoadExpressions | None = None
        self._is_importing = False
        self.count_replicas: CountReplicas = lambda controller: 1
        """Counts the replicas of a controller."""
        texts = [
            (f"usage[{at}].{name}", text) for at, rule in enumerate(usage) for name, text in rule.expressions.items()
        ]
        texts += [(f"metrics[{at}].value", each.value) for at, each in enumerate(metrics)]
        for where, text in texts:
            if _nanos(text) is None:
                if self._expressions is None:
                    self._expressions = import_module(_MODULE).LoadExpressions()
                try:
                    self._expressions.check(text)
                except ValueError as error:
                    raise ValueError(f"{where}: {error}") from None

    # Usage

    def used(self, pod: Pod, container: Container, resource: str, at: float) -> int | None:
        """Return the usage of a container in billionths; see UsageSource."""
        metadata = pod.metadata
        text = next(self._usage_texts(metadata, container.name, resource), None)
        if text is None:
            return None
        request = _nanos(container.resources.requests.get(resource, "")) or 0
        age = max(0.0, at - times.unix(pod.status.start_time)) if pod.status.start_time else 0.0
        about = f"{metadata.uid}/{container.name}/{resource}"
        value = self._value(text, metadata, about, at, age, number_of(request), container.name)
        return None if value is None else int(value * NANO)

    def _usage_texts(self, metadata: ObjectMeta, container: str, resource: str) -> Iterator[str]:
        for key in (f"{PREFIX}{resource}.{container}", f"{PREFIX}{resource}"):
            if said := metadata.annotations.get(key):
                yield said
        for rule in self._usage:
            if resource in rule.expressions and rule.of.include(metadata, container):
                yield rule.expressions[resource]

    # Metrics

    def custom(self, resource: str, metric: str, metadata: ObjectMeta, annotation: str) -> str | None:
        """Return the value of a custom metric of an object as a quantity, None if it has none.

        `annotation` is the object's own expression, "" for none.
        """
        texts = (
            (annotation,)
            if annotation
            else (
                each.value
                for each in self._metrics
                if each.resource == resource and each.name == metric and each.of.include(metadata)
            )
        )
        text = next(iter(texts), None)
        if text is None:
            return None
        at = times.unix_now()
        age = max(0.0, at - times.unix(metadata.creation_timestamp)) if metadata.creation_timestamp else 0.0
        return _quantity(self._value(text, metadata, f"{metadata.uid}/{metric}", at, age))

    def external(self, namespace: str, metric: str) -> Iterator[tuple[dict[str, str], str]]:
        """Yield the labels and values of an external metric of a namespace."""
        for each in self._metrics:
            if not each.resource and each.name == metric and each.of.namespace in ("", namespace):
                value = self.external_value(namespace, metric, each.value)
                if value is not None:
                    yield dict(each.labels), value

    def external_value(self, namespace: str, metric: str, text: str) -> str | None:
        """Return the value of an expression of an external metric as a quantity; None if it has none."""
        metadata = ObjectMeta(namespace=namespace)
        return _quantity(self._value(text, metadata, f"{namespace}/{metric}", times.unix_now(), 0.0))

    # Expressions

    def _value(
        self,
        text: str,
        metadata: ObjectMeta,
        about: str,
        at: float,
        age: float,
        request: float = 0.0,
        container: str = "",
    ) -> float | None:
        """Return the value of a quantity or an expression; None if it has none, or while expressions are imported."""
        plain = _nanos(text)
        if plain is not None:
            return number_of(plain)
        if self._expressions is None:
            self._begin_import()
            return None
        variables = {
            "age": age,
            "container": container,
            "noise": noise(self._seed, about, at) if "noise" in text else 0.0,
            "object": _plain(metadata),
            "replicas": self._replicas(metadata) if "replicas" in text else 1.0,
            "request": request,
        }
        value = self._expressions.value(text, self.curves, lambda name: self.curves[name].at(at), variables, at)
        return None if value is None else bounded(value)

    def _replicas(self, metadata: ObjectMeta) -> float:
        controller = next(filter(_is_controller, metadata.owner_references), None)
        return 1.0 if controller is None else float(max(1, self.count_replicas(controller.uid)))

    def _begin_import(self) -> None:
        """Import the compiler in a worker thread, as that takes too long for the event loop."""
        if not self._is_importing:
            self._is_importing = True
            begin_task(self._import(), name="import of expressions")

    async def _import(self) -> None:
        self._expressions = (await import_offloaded(_MODULE)).LoadExpressions()


def _is_controller(owner: OwnerReference) -> bool:
    return bool(owner.controller)


def _plain(metadata: ObjectMeta) -> dict[str, Any]:
    return {
        "metadata": {
            "name": metadata.name,
            "namespace": metadata.namespace,
            "labels": metadata.labels,
            "annotations": metadata.annotations,
        }
    }


def _nanos(text: str) -> int | None:
    try:
        return nanos(text)
    except QuantityError:
        return None


def _quantity(value: float | None) -> str | None:
    """Return a value as a quantity in thousandths."""
    return None if value is None else canonical(f"{round(value * 1000)}m")

"""RuntimeClasses: the container runtimes of pods."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.api.core.v1 import ResourceRequirements
from steersman.api.node.v1 import RuntimeClass, Scheduling
from steersman.kinds.built_in import built_in
from steersman.machinery.errors.field import FieldError, Path, duplicate
from steersman.machinery.validation.leaves import validate_required_name
from steersman.machinery.validation.object_meta import name_is_dns_label, name_is_dns_subdomain
from steersman.machinery.validation.selectors import validate_labels
from steersman.registry.pod_template.validation.options import PodValidationOptions
from steersman.registry.pod_template.validation.resources import validate_container_resources
from steersman.registry.pod_template.validation.scheduling import validate_tolerations
from steersman.registry.printing.internal_form import internal_text
from steersman.registry.validation.deprecated_labels import DEPRECATED
from steersman.rest.context import Context
from steersman.rest.resource import AGE, Column, Resource
from steersman.rest.strategy import Strategy


def _validate_scheduling(scheduling: Scheduling, path: Path) -> Iterator[FieldError]:
    yield from validate_labels(scheduling.node_selector, path / "nodeSelector")
    yield from validate_tolerations(scheduling.tolerations, path / "tolerations", PodValidationOptions())
    seen: set[tuple[str, str, str, str]] = set()
    for index, toleration in enumerate(scheduling.tolerations):
        key = (toleration.key, toleration.operator, toleration.value, toleration.effect)
        if key in seen:
            yield duplicate((path / "tolerations")[index], internal_text(toleration))
        seen.add(key)


class RuntimeClassStrategy(Strategy[RuntimeClass]):
    immutable = ("handler",)
    allow_create_on_update = True
    allow_unconditional_update = False

    def validate(self, ctx: Context, runtime_class: RuntimeClass) -> Iterator[FieldError]:
        yield from validate_required_name(name_is_dns_label, runtime_class.handler, Path("handler"))
        if runtime_class.overhead is not None:
            resources = ResourceRequirements(limits=runtime_class.overhead.pod_fixed)
            yield from validate_container_resources(resources, (), Path("overhead"), PodValidationOptions())
        if runtime_class.scheduling is not None:
            yield from _validate_scheduling(runtime_class.scheduling, Path("scheduling"))

    def validate_update(self, ctx: Context, new: RuntimeClass, old: RuntimeClass) -> Iterator[FieldError]:
        yield from self.validate(ctx, new)
        yield from super().validate_update(ctx, new, old)

    def warnings(self, ctx: Context, runtime_class: RuntimeClass) -> Iterator[str]:
        if runtime_class.scheduling is not None:
            for label in runtime_class.scheduling.node_selector:
                if text := DEPRECATED.get(label):
                    yield f"scheduling.nodeSelector: {text}"


RUNTIME_CLASSES = Resource(
    kind=built_in(RuntimeClass),
    plural="runtimeclasses",
    namespaced=False,
    strategy=RuntimeClassStrategy(),
    name_validator=name_is_dns_subdomain,
    revalidates_metadata=True,
    columns=(Column("Handler", lambda c: c.handler), AGE),
    storage_version_hash="WQTu1GL3T2Q=",
)

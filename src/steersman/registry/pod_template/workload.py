"""The base of the strategies of kinds with a pod template."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Self, TypeVar

from steersman.api.core.v1 import PodTemplateSpec
from steersman.machinery.errors.field import Path
from steersman.machinery.validation.formats import is_dns1123_label
from steersman.registry.pod_template.fields import drop_disabled_template_fields
from steersman.registry.pod_template.validation.leniency import pod_template_options
from steersman.registry.pod_template.validation.options import PodValidationOptions
from steersman.registry.pod_template.warnings import warnings_for_pod_template
from steersman.registry.services import Services
from steersman.rest.context import Context
from steersman.rest.strategy import Strategy

T = TypeVar("T")

TEMPLATE = Path("spec", "template")


class WorkloadStrategy(Strategy[T, Services]):
    """The default behaviour of a kind with a pod template, which is validated as strictly as the server's flags demand."""

    resets = ("status",)
    bumps_generation_on: tuple[str, ...] = ("spec",)
    allow_privileged: bool = True

    def template_of(self, obj: T) -> PodTemplateSpec | None:
        """Return the pod template of `obj`."""
        template: PodTemplateSpec | None = obj.spec.template  # type: ignore[attr-defined]
        return template

    def bind(self, services: Services) -> Self:
        bound = copy.copy(self)
        bound.allow_privileged = services.allow_privileged
        return bound

    def prepare_for_create(self, ctx: Context, obj: T) -> None:
        super().prepare_for_create(ctx, obj)
        self._drop_disabled_fields(obj, None)

    def prepare_for_update(self, ctx: Context, new: T, old: T) -> None:
        self._drop_disabled_fields(new, self.template_of(old))
        super().prepare_for_update(ctx, new, old)

    def _drop_disabled_fields(self, obj: T, old: PodTemplateSpec | None) -> None:
        if (template := self.template_of(obj)) is not None:
            drop_disabled_template_fields(template, old)

    def template_options(self, old: PodTemplateSpec | None) -> PodValidationOptions:
        """Return the options for validating a template; on an update they allow the invalid values of `old`."""
        return pod_template_options(old, allow_privileged=self.allow_privileged)

    def spec_warnings(self, obj: T) -> Iterator[str]:
        """Yield warnings about the spec of `obj`."""
        template = self.template_of(obj)
        return iter(()) if template is None else template_warnings(template)

    def warnings_on_create(self, ctx: Context, obj: T) -> Iterator[str]:
        """Yield warnings about the name and the spec."""
        yield from name_warnings(obj.metadata.name)  # type: ignore[attr-defined]
        yield from self.spec_warnings(obj)

    def warnings_on_update(self, ctx: Context, new: T, old: T) -> Iterator[str]:
        """Yield warnings about a changed spec."""
        if new.metadata.generation != old.metadata.generation:  # type: ignore[attr-defined]
            yield from self.spec_warnings(new)


def name_warnings(name: str) -> Iterator[str]:
    """Yield a warning if the name cannot be a hostname, as pods are named after their workload."""
    if problems := is_dns1123_label(name):
        yield (
            "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
            f"a DNS label is recommended: [{' '.join(problems)}]"
        )


def template_warnings(template: PodTemplateSpec, path: Path = TEMPLATE) -> Iterator[str]:
    """Yield warnings about a pod template."""
    return warnings_for_pod_template(template, path)

"""Conversion of the AppArmor annotations of new pods to fields, for clients from before 1.30."""

from __future__ import annotations

from steersman.api.core import v1 as core
from steersman.machinery.built_in.pod_resources import all_containers
from steersman.machinery.errors.field import Path
from steersman.registry.pod_template.validation.profiles import (
    APP_ARMOR_CONTAINER,
    LOCALHOST,
    RUNTIME_DEFAULT,
    UNCONFINED,
    has_profiles,
    validate_app_armor_profile,
)
from steersman.rest.context import Context

DEPRECATED = 'deprecated since v1.30; use the "appArmorProfile" field instead'


def profile_for_annotation(annotation: str) -> core.AppArmorProfile | None:
    """Return the profile that an annotation's value stands for, None if it stands for none."""
    if annotation == UNCONFINED:
        return core.AppArmorProfile(type="Unconfined")
    if annotation == RUNTIME_DEFAULT:
        return core.AppArmorProfile(type="RuntimeDefault")
    name = annotation.removeprefix(LOCALHOST)
    if annotation.startswith(LOCALHOST) and name:
        return core.AppArmorProfile(type="Localhost", localhost_profile=name)
    return None


def sync_app_armor_annotations(ctx: Context, pod: core.Pod) -> None:
    """Set the profile of each container that only has the annotation, and warn about the annotation."""
    annotations, spec = pod.metadata.annotations, pod.spec
    if not has_profiles(annotations) or (spec.os is not None and spec.os.name == "windows"):
        return
    of_pod = spec.security_context.app_armor_profile if spec.security_context is not None else None
    for container in all_containers(spec):
        key = APP_ARMOR_CONTAINER + container.name
        context = container.security_context
        if key not in annotations or (context is not None and context.app_armor_profile is not None):
            continue
        profile = profile_for_annotation(annotations[key])
        if any(True for _ in validate_app_armor_profile(profile, Path())):
            profile = None
        if profile is not None and profile == of_pod:
            continue
        if profile is not None:
            context = container.security_context = context or core.SecurityContext()
            context.app_armor_profile = profile
        ctx.warn(f"{Path('metadata', 'annotations')[key]}: {DEPRECATED}")

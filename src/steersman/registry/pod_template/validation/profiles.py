"""Validation of seccomp and AppArmor profiles: fields, legacy annotations, and their agreement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from steersman.api.core import v1 as core
from steersman.machinery.built_in.pod_resources import all_containers
from steersman.machinery.errors.field import (
    FieldError,
    Path,
    forbidden,
    invalid,
    not_supported,
    quote,
    required,
    too_long,
)
from steersman.machinery.go.strings import trim_space
from steersman.registry.pod_template.validation.paths import validate_descending_path
from steersman.registry.pod_template.visiting import containers_with_paths
from steersman.registry.printing.internal_form import internal_text

SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"
APP_ARMOR_CONTAINER: Final = "container.apparmor.security.beta.kubernetes.io/"
"""Annotations; those of containers end with the container's name."""
RUNTIME_DEFAULT: Final = "runtime/default"
UNCONFINED: Final = "unconfined"
LOCALHOST: Final = "localhost/"
"""Values of the annotations; a profile's name follows the last prefix."""

_TYPES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_DOCKER_DEFAULT: Final = "docker/default"
_LONGEST_PROFILE: Final = 4095


def has_profiles(annotations: Mapping[str, str]) -> bool:
    """Return False if no annotation is about profiles. The check is cheap, as few pods have such an annotation today."""
    return ".security." in "\n".join(annotations)


def validate_seccomp_profile(profile: core.SeccompProfile, path: Path) -> Iterator[FieldError]:
    """Validate a seccompProfile field."""
    if not profile.type:
        yield required(path / "type", "type is required when seccompProfile is set")
    elif profile.type not in _TYPES:
        yield not_supported(path / "type", profile.type, _TYPES)
    here = path / "localhostProfile"
    if profile.type != "Localhost":
        if profile.localhost_profile is not None:
            yield invalid(here, internal_text(profile), "can only be set when seccomp type is Localhost")
    elif profile.localhost_profile is None:
        yield required(here, "must be set when seccomp type is Localhost")
    else:
        yield from validate_descending_path(profile.localhost_profile, here)


def validate_app_armor_profile(profile: core.AppArmorProfile | None, path: Path) -> Iterator[FieldError]:
    """Validate an appArmorProfile field."""
    if profile is None:
        return
    here = path / "localhostProfile"
    name = profile.localhost_profile
    if profile.type == "Localhost":
        if name is None:
            yield required(here, "must be set when AppArmor type is Localhost")
            return
        if trim_space(name) != name:
            yield invalid(here, name, "must not be padded with whitespace")
        elif not name:
            yield required(here, "must be set when AppArmor type is Localhost")
        if len(name.encode()) > _LONGEST_PROFILE:
            yield too_long(here, _LONGEST_PROFILE)
    elif profile.type in _TYPES:
        if name is not None:
            yield invalid(here, name, "can only be set when AppArmor type is Localhost")
    elif not profile.type:
        yield required(path / "type", "type is required when appArmorProfile is set")
    else:
        yield not_supported(path / "type", profile.type, _TYPES)


def validate_profile_annotations(
    annotations: Mapping[str, str], spec: core.PodSpec, path: Path
) -> Iterator[FieldError]:
    """Yield errors of the seccomp and AppArmor annotations: unknown profiles, and names of no container."""
    if not has_profiles(annotations):
        return
    if SECCOMP_POD in annotations:
        yield from _validate_seccomp_annotation(annotations[SECCOMP_POD], path / SECCOMP_POD)
    for key, value in annotations.items():
        if key.startswith(SECCOMP_CONTAINER):
            yield from _validate_seccomp_annotation(value, path / key)
    profiles = {key: value for key, value in annotations.items() if key.startswith(APP_ARMOR_CONTAINER)}
    containers = {container.name for container in all_containers(spec)} if profiles else set()
    for key, value in profiles.items():
        name = key.removeprefix(APP_ARMOR_CONTAINER)
        if name not in containers:
            yield invalid(path[key], name, "container not found")
        if value not in ("", RUNTIME_DEFAULT, UNCONFINED) and not value.startswith(LOCALHOST):
            yield invalid(path[key], value, f"invalid AppArmor profile name: {quote(value)}")


def _validate_seccomp_annotation(profile: str, path: Path) -> Iterator[FieldError]:
    if profile in (RUNTIME_DEFAULT, _DOCKER_DEFAULT, UNCONFINED):
        return
    if profile.startswith(LOCALHOST):
        yield from validate_descending_path(profile.removeprefix(LOCALHOST), path)
    else:
        yield invalid(path, profile, "must be a valid seccomp profile")


def validate_profiles_match(annotations: Mapping[str, str], spec: core.PodSpec, path: Path) -> Iterator[FieldError]:
    """Validate that annotations and fields agree where both are set; `path` is that of the spec."""
    if not has_profiles(annotations):
        return
    context = spec.security_context or core.PodSecurityContext()
    if context.seccomp_profile is not None and SECCOMP_POD in annotations:
        here = path.child("securityContext", "seccompProfile")
        yield from _validate_seccomp_match(annotations[SECCOMP_POD], context.seccomp_profile, here)
    for container, where in containers_with_paths(spec, path):
        own = container.security_context
        annotation = annotations.get(SECCOMP_CONTAINER + container.name)
        if own is not None and own.seccomp_profile is not None and annotation is not None:
            here = where.child("securityContext", "seccompProfile")
            yield from _validate_seccomp_match(annotation, own.seccomp_profile, here)
    if spec.os is not None and spec.os.name == "windows":
        return
    for container, where in containers_with_paths(spec, path):
        own = container.security_context
        profile = (own.app_armor_profile if own is not None else None) or context.app_armor_profile
        annotation = annotations.get(APP_ARMOR_CONTAINER + container.name)
        if profile is not None and annotation is not None:
            here = where.child("securityContext", "appArmorProfile")
            yield from _validate_match(annotation, profile, here, "apparmor", (RUNTIME_DEFAULT,))


def _validate_seccomp_match(annotation: str, profile: core.SeccompProfile, path: Path) -> Iterator[FieldError]:
    yield from _validate_match(annotation, profile, path, "seccomp", (RUNTIME_DEFAULT, _DOCKER_DEFAULT))


def _validate_match(
    annotation: str,
    profile: core.SeccompProfile | core.AppArmorProfile,
    path: Path,
    system: str,
    defaults: tuple[str, ...],
) -> Iterator[FieldError]:
    differs = (
        (profile.type == "Unconfined" and annotation != UNCONFINED)
        or (profile.type == "RuntimeDefault" and annotation not in defaults)
        or (profile.type == "Localhost" and not annotation.startswith(LOCALHOST))
    )
    if differs:
        yield forbidden(path / "type", f"{system} type in annotation and field must match")
    elif profile.type == "Localhost" and annotation.removeprefix(LOCALHOST) != profile.localhost_profile:
        yield forbidden(path / "localhostProfile", f"{system} profile in annotation and field must match")

"""Validation of environment variables and of their sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from steersman.api.core import v1 as core
from steersman.machinery.built_in.pod_resources import AnyContainer
from steersman.machinery.errors.field import FieldError, Path, invalid, not_found, required
from steersman.machinery.validation.formats import (
    is_config_map_key,
    is_dns1123_label,
    is_dns1123_subdomain,
    is_relaxed_env_var_name,
    is_usual_config_map_key,
    is_usual_env_var_name,
)
from steersman.machinery.validation.leaves import (
    validate_name,
    validate_required,
    validate_with,
)
from steersman.machinery.validation.object_meta import name_is_dns_subdomain
from steersman.registry.pod_template.validation.downward import (
    ENV_FIELDS,
    validate_object_field_selector,
    validate_resource_field_selector,
)
from steersman.registry.pod_template.validation.paths import validate_no_backsteps
from steersman.registry.pod_template.visiting import containers_with_paths

_SOURCES: Final = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
)


def validate_env(variables: list[core.EnvVar], path: Path) -> Iterator[FieldError]:
    """Validate the variables of a container's `env`."""
    for index, variable in enumerate(variables):
        if not is_usual_env_var_name(variable.name):
            yield from validate_required(is_relaxed_env_var_name, variable.name, path[index] / "name")
        source = variable.value_from
        if source is not None and (variable.value or not is_usual(source)):
            yield from validate_value_from(source, variable.value, path[index] / "valueFrom")


def is_usual(source: core.EnvVarSource) -> bool:
    """Return True for a valid source of one of the three common types, alone."""
    if (field := source.field_ref) is not None:
        return field.api_version == "v1" and field.field_path in ENV_FIELDS and source == core.EnvVarSource(field)
    if (secret := source.secret_key_ref) is not None:
        return _is_usual_key(secret) and source == core.EnvVarSource(secret_key_ref=secret)
    if (config_map := source.config_map_key_ref) is not None:
        return _is_usual_key(config_map) and source == core.EnvVarSource(config_map_key_ref=config_map)
    return False


def _is_usual_key(selector: core.ConfigMapKeySelector | core.SecretKeySelector) -> bool:
    return is_usual_config_map_key(selector.key) is not None and not is_dns1123_subdomain(selector.name)


def validate_value_from(source: core.EnvVarSource, value: str, path: Path) -> Iterator[FieldError]:
    """Yield the errors of the source of a variable that has the literal value `value`."""
    sources = 0
    if source.field_ref is not None:
        sources += 1
        yield from validate_object_field_selector(source.field_ref, ENV_FIELDS, path / "fieldRef")
    if source.resource_field_ref is not None:
        sources += 1
        yield from validate_resource_field_selector(
            source.resource_field_ref, path / "resourceFieldRef", container_needed=False
        )
    if source.config_map_key_ref is not None:
        sources += 1
        yield from _validate_key_selector(source.config_map_key_ref, path / "configMapKeyRef")
    if source.secret_key_ref is not None:
        sources += 1
        yield from _validate_key_selector(source.secret_key_ref, path / "secretKeyRef")
    if source.file_key_ref is not None:
        sources += 1
        yield from _validate_file_key(source.file_key_ref, path / "fileKeyRef")
    if sources == 0:
        yield invalid(path, "", _SOURCES)
    elif value:
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif sources > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")


def _validate_key_selector(
    selector: core.ConfigMapKeySelector | core.SecretKeySelector, path: Path
) -> Iterator[FieldError]:
    yield from validate_name(name_is_dns_subdomain, selector.name, path / "name")
    yield from validate_required(is_config_map_key, selector.key, path / "key")


def _validate_file_key(selector: core.FileKeySelector, path: Path) -> Iterator[FieldError]:
    yield from validate_required(is_relaxed_env_var_name, selector.key, path / "key")
    yield from validate_required(is_dns1123_label, selector.volume_name, path / "volumeName")
    if not selector.path:
        yield required(path / "path")
    else:
        yield from validate_no_backsteps(selector.path, path / "path")


def validate_env_from(sources: list[core.EnvFromSource], path: Path) -> Iterator[FieldError]:
    """Validate references to whole ConfigMaps and Secrets."""
    for index, source in enumerate(sources):
        here = path[index]
        if source.prefix:
            yield from validate_with(is_relaxed_env_var_name, source.prefix, here / "prefix")
        if source.config_map_ref is not None:
            yield from _validate_env_source(source.config_map_ref, here / "configMapRef")
        if source.secret_ref is not None:
            yield from _validate_env_source(source.secret_ref, here / "secretRef")
        if source.config_map_ref is None and source.secret_ref is None:
            yield invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif source.config_map_ref is not None and source.secret_ref is not None:
            yield invalid(path, "", "may not have more than one field specified at a time")


def _validate_env_source(source: core.ConfigMapEnvSource | core.SecretEnvSource, path: Path) -> Iterator[FieldError]:
    if not source.name:
        yield required(path / "name")
    else:
        for message in name_is_dns_subdomain(source.name, True):
            yield invalid(path / "name", source.name, message)


def reads_files(containers: Iterable[AnyContainer]) -> bool:
    """Return True if any variable comes from a file, which is rare."""
    for container in containers:
        for variable in container.env:
            if variable.value_from is not None and variable.value_from.file_key_ref is not None:
                return True
    return False


def validate_file_key_volumes(spec: core.PodSpec, path: Path) -> Iterator[FieldError]:
    """Validate that files with variables are in emptyDir volumes of the pod."""
    volumes = {volume.name: volume for volume in spec.volumes}
    for container, here in containers_with_paths(spec, path):
        for index, variable in enumerate(container.env):
            if variable.value_from is None or (selector := variable.value_from.file_key_ref) is None:
                continue
            name_path = (here / "env")[index].child("valueFrom", "fileKeyRef", "volumeName")
            volume = volumes.get(selector.volume_name)
            if volume is None:
                yield not_found(name_path, selector.volume_name)
            elif volume.empty_dir is None:
                yield invalid(name_path, selector.volume_name, "referenced volume must be of type emptyDir")

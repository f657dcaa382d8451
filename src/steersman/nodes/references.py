"""ConfigMaps and Secrets that pods reference, and the kubelet's errors where an object or a key is missing.

Follows pkg/kubelet `kubelet_pods.go` (makeEnvironmentVariables) and pkg/volume `configmap`, `secret`, `projected`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from steersman.api.core.v1 import EnvVarSource, KeyToPath, Pod, Volume
from steersman.machinery.built_in.pod_resources import AnyContainer, all_containers

MOST_NAME: Final = 253
"""Characters of the longest name of a ConfigMap or Secret; pods may reference longer ones, which do not exist."""
CONFIG_MAP: Final = "ConfigMap"
SECRET: Final = "Secret"


class Source(NamedTuple):
    """Identity of a ConfigMap or a Secret in the pod's namespace."""

    kind: str
    name: str


class Keys(NamedTuple):
    """Keys of a ConfigMap or Secret: all of them, and those that variables may use (not `binaryData`)."""

    all: frozenset[str]
    plain: frozenset[str]


Find = Callable[[Source], Keys | None]
"""Returns the keys of a ConfigMap or Secret; None if it does not exist."""


class _Reference(NamedTuple):
    """Reference of a pod to a ConfigMap or Secret. Empty `keys` means all keys."""

    source: Source
    keys: tuple[str, ...]
    optional: bool


def sources_of(pod: Pod) -> Iterator[Source]:
    """Yield the ConfigMaps and Secrets that a pod references, some more than once."""
    yield from (Source(SECRET, each.name) for each in pod.spec.image_pull_secrets if each.name)
    for container in all_containers(pod.spec):
        for reference in _variable_references(container):
            yield reference.source
    for volume in pod.spec.volumes:
        for reference in _volume_references(volume):
            yield reference.source


def missing_pull_secrets(pod: Pod, find: Find) -> list[str]:
    """Return the names of missing image pull Secrets."""
    names = [each.name for each in pod.spec.image_pull_secrets if each.name]
    return [name for name in names if find(Source(SECRET, name)) is None]


def missing_sources(pod: Pod, find: Find) -> dict[Source, set[str]]:
    """Return the missing ConfigMaps and Secrets without which a pod does not start, with the keys that it
    references.
    """
    references = [each for volume in pod.spec.volumes for each in _volume_references(volume)]
    references += [each for container in all_containers(pod.spec) for each in _variable_references(container)]
    missing: dict[Source, set[str]] = {}
    for each in references:
        if not each.optional and find(each.source) is None:
            missing.setdefault(each.source, set()).update(each.keys)
    return missing


def config_error(container: AnyContainer, namespace: str, find: Find) -> str:
    """Return the error in a container's variables; "" if all references are found."""
    for reference in _variable_references(container):
        source = reference.source
        keys = find(source)
        if reference.optional and (keys is None or not keys.plain.issuperset(reference.keys)):
            continue
        if keys is None:
            return _not_found(source)
        for key in reference.keys:
            if key not in keys.plain:
                return f"couldn't find key {key} in {source.kind} {namespace}/{source.name}"
    return ""


def volume_error(volume: Volume, find: Find) -> str:
    """Return the error of a volume; "" if all references are found."""
    errors: list[str] = []
    for reference in _volume_references(volume):
        error = _reference_error(reference, find(reference.source))
        if error and error not in errors:
            errors.append(error)
    if not errors:
        return ""
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"


def _reference_error(reference: _Reference, keys: Keys | None) -> str:
    if reference.optional:
        return ""
    if keys is None:
        return _not_found(reference.source)
    for key in reference.keys:
        if key not in keys.all:
            if reference.source.kind == SECRET:
                return f"references non-existent secret key: {key}"
            return f"configmap references non-existent config key: {key}"
    return ""


def _not_found(source: Source) -> str:
    return f'{"secret" if source.kind == SECRET else "configmap"} "{source.name}" not found'


def _variable_references(container: AnyContainer) -> Iterator[_Reference]:
    """Yield the references of a container's variables, in the order in which a kubelet resolves them."""
    for each in container.env_from:
        if (of_map := each.config_map_ref) is not None:
            yield _Reference(Source(CONFIG_MAP, of_map.name), (), bool(of_map.optional))
        elif (of_secret := each.secret_ref) is not None:
            yield _Reference(Source(SECRET, of_secret.name), (), bool(of_secret.optional))
    for variable in container.env:
        if variable.value_from is not None:
            yield from _references_of_variable(variable.value_from)


def _references_of_variable(value: EnvVarSource) -> Iterator[_Reference]:
    if (of_map := value.config_map_key_ref) is not None:
        yield _Reference(Source(CONFIG_MAP, of_map.name), (of_map.key,), bool(of_map.optional))
    elif (of_secret := value.secret_key_ref) is not None:
        yield _Reference(Source(SECRET, of_secret.name), (of_secret.key,), bool(of_secret.optional))


def _volume_references(volume: Volume) -> Iterator[_Reference]:
    if (of_map := volume.config_map) is not None:
        yield _Reference(Source(CONFIG_MAP, of_map.name), _keys(of_map.items), bool(of_map.optional))
    if (of_secret := volume.secret) is not None:
        yield _Reference(Source(SECRET, of_secret.secret_name), _keys(of_secret.items), bool(of_secret.optional))
    for each in () if volume.projected is None else volume.projected.sources or ():
        if each.config_map is not None:
            name, items, optional = each.config_map.name, each.config_map.items, each.config_map.optional
            yield _Reference(Source(CONFIG_MAP, name), _keys(items), bool(optional))
        elif each.secret is not None:
            name, items, optional = each.secret.name, each.secret.items, each.secret.optional
            yield _Reference(Source(SECRET, name), _keys(items), bool(optional))


def _keys(items: Sequence[KeyToPath]) -> tuple[str, ...]:
    return tuple(each.key for each in items)

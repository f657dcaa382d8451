"""Pods and templates for tests, made of plain data, with their defaults."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from steersman.api.core.v1 import Pod, PodTemplateSpec
from steersman.machinery.codec.serializer import from_plain, to_plain
from steersman.machinery.errors.field import FieldError
from steersman.registry.core.pods.strategy import PodStrategy
from steersman.registry.pod_template.defaults import set_pod_defaults, set_pod_template_defaults
from steersman.rest.context import Context

CONTAINER = {"name": "c", "image": "nginx"}


def bare_pod(name: str = "a", **spec: Any) -> Pod:
    """Return a pod as the client sends it."""
    metadata = spec.pop("metadata", {})
    return from_plain(
        Pod,
        {"metadata": {"name": name, "namespace": "ns", **metadata}, "spec": {"containers": [CONTAINER], **spec}},
    )


def defaulted_pod(name: str = "a", **spec: Any) -> Pod:
    """Return a pod as it reaches its strategy."""
    pod = bare_pod(name, **spec)
    set_pod_defaults(pod)
    return pod


def created_pod(name: str = "a", **spec: Any) -> Pod:
    """Return a pod as it is stored."""
    pod = defaulted_pod(name, **spec)
    strategy = PodStrategy()
    strategy.prepare_for_create(Context(), pod)
    assert messages(strategy.validate(Context(), pod)) == []
    return pod


def changed(pod: Pod, **spec: Any) -> Pod:
    """Return a copy of `pod` with other values in its spec, as a merge patch makes it."""
    plain = to_plain(pod)
    plain["spec"] |= spec
    copy = from_plain(Pod, plain)
    set_pod_defaults(copy)
    return copy


def template(metadata: dict[str, Any] | None = None, **spec: Any) -> PodTemplateSpec:
    """Return a template with its defaults."""
    made = from_plain(PodTemplateSpec, {"metadata": metadata or {}, "spec": {"containers": [CONTAINER], **spec}})
    set_pod_template_defaults(made)
    return made


def messages(errors: Iterable[FieldError]) -> list[str]:
    """Return the messages of field errors."""
    return [str(error) for error in errors]


def create_errors(**spec: Any) -> list[str]:
    """Return the errors for creating such a pod."""
    pod = defaulted_pod(**spec)
    strategy = PodStrategy()
    strategy.prepare_for_create(Context(), pod)
    return messages(strategy.validate(Context(), pod))

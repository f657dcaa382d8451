"""A request as webhooks and expressions are told of it: an AdmissionRequest without its objects (admission/v1)."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from steersman.admission.interface import CREATE, UPDATE, Attributes
from steersman.admission_plugins.matching.rules import Seen
from steersman.api.meta.v1 import CreateOptions, DeleteOptions, UpdateOptions
from steersman.machinery.codec.serializer import to_plain
from steersman.machinery.identity.schema import GroupVersionKind


def admission_request(attributes: Attributes, seen: Seen, uid: str = "") -> dict[str, Any]:
    """The members of an AdmissionRequest but object and oldObject, as JSON has them; `seen` is as what a rule has
    matched it."""
    action, user = attributes.action, attributes.user
    request: dict[str, Any] = {
        "uid": uid,
        "kind": _kind(seen.kind),
        "resource": _resource(seen.group, seen.version, seen.resource),
        "requestKind": _kind(attributes.kind),
        "requestResource": _resource(action.group, action.version, action.resource),
        "operation": attributes.operation,
        "dryRun": attributes.dry_run,
        "options": _options(attributes),
    }
    optional = {
        "subResource": seen.subresource,
        "requestSubResource": action.subresource,
        "name": attributes.name,
        "namespace": action.namespace,
    }
    told = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    request["userInfo"] = {key: value for key, value in told.items() if value}
    request.update((key, value) for key, value in optional.items() if value)
    return request


def _kind(gvk: GroupVersionKind) -> dict[str, str]:
    return {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}


def _resource(group: str, version: str, resource: str) -> dict[str, str]:
    return {"group": group, "version": version, "resource": resource}


def _options(attributes: Attributes) -> dict[str, Any] | None:
    """The options of a request as those of its operation: what patches, and what may create by another verb, is asked
    for by the options of that verb. None where there are none."""
    given = attributes.options
    if given is None or isinstance(given, DeleteOptions):
        return None if given is None else _plain(given)
    cls = _OPTIONS.get(attributes.operation)
    if cls is None:
        return None
    return _plain(
        cls(dry_run=given.dry_run, field_manager=given.field_manager, field_validation=given.field_validation)
    )


def _plain(options: msgspec.Struct) -> dict[str, Any]:
    plain: dict[str, Any] = to_plain(options)
    return {"kind": type(options).__name__, "apiVersion": "meta.k8s.io/v1", **plain}


_OPTIONS: Final = {CREATE: CreateOptions, UPDATE: UpdateOptions}

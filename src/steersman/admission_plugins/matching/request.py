"""AdmissionRequest (admission/v1) of a write, for webhooks and expressions, without its objects."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from steersman.admission.interface import CREATE, UPDATE, Attributes
from steersman.admission_plugins.matching.rules import MatchedResource
from steersman.api.meta.v1 import CreateOptions, DeleteOptions, UpdateOptions
from steersman.machinery.codec.serializer import to_plain
from steersman.machinery.identity.schema import GroupVersionKind


def admission_request(attributes: Attributes, matched: MatchedResource, uid: str = "") -> dict[str, Any]:
    """Return an AdmissionRequest as plain data without object and oldObject; `matched` is the matched resource."""
    action, user = attributes.action, attributes.user
    request: dict[str, Any] = {
        "uid": uid,
        "kind": _kind(matched.kind),
        "resource": _resource(matched.group, matched.version, matched.resource),
        "requestKind": _kind(attributes.kind),
        "requestResource": _resource(action.group, action.version, action.resource),
        "operation": attributes.operation,
        "dryRun": attributes.dry_run,
        "options": _options(attributes),
    }
    optional = {
        "subResource": matched.subresource,
        "requestSubResource": action.subresource,
        "name": attributes.name,
        "namespace": action.namespace,
    }
    user_info = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    request["userInfo"] = {key: value for key, value in user_info.items() if value}
    request.update((key, value) for key, value in optional.items() if value)
    return request


def _kind(gvk: GroupVersionKind) -> dict[str, str]:
    return {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}


def _resource(group: str, version: str, resource: str) -> dict[str, str]:
    return {"group": group, "version": version, "resource": resource}


def _options(attributes: Attributes) -> dict[str, Any] | None:
    """Return the options of a request in the kind that belongs to its operation, None if it has no options.

    A PATCH, or a create by another verb, arrives with options of that verb.
    """
    options = attributes.options
    if options is None or isinstance(options, DeleteOptions):
        return None if options is None else _with_type_meta(options)
    cls = _OPTIONS.get(attributes.operation)
    if cls is None:
        return None
    return _with_type_meta(
        cls(dry_run=options.dry_run, field_manager=options.field_manager, field_validation=options.field_validation)
    )


def _with_type_meta(options: msgspec.Struct) -> dict[str, Any]:
    plain: dict[str, Any] = to_plain(options)
    return {"kind": type(options).__name__, "apiVersion": "meta.k8s.io/v1", **plain}


_OPTIONS: Final = {CREATE: CreateOptions, UPDATE: UpdateOptions}

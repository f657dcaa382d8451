"""Variables and declared types of admission expressions (apiserver `admission/plugin/cel` compile.go).

Objects are dynamic. The members of the request and of its namespace are declared as far as upstream declares them.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from steersman.cel import declared, types
from steersman.cel.declared import DeclaredType, declared_list, declared_map, declared_object
from steersman.cel.environment import Environment
from steersman.cel.library.authorizer import AUTHORIZER, RESOURCE_CHECK
from steersman.cel.library.kubernetes import base_environment
from steersman.cel.library.mutation import JSON_PATCHES, constructed
from steersman.cel.types import Type

OBJECT: Final = "object"
OLD_OBJECT: Final = "oldObject"
REQUEST: Final = "request"
NAMESPACE_OBJECT: Final = "namespaceObject"
PARAMS: Final = "params"
AUTHORIZER_NAME: Final = "authorizer"
REQUEST_RESOURCE: Final = "authorizer.requestResource"
VARIABLES: Final = "variables"

_UNLIMITED: Final = -1
_TEXTS: Final = declared_list(declared.STRING, _UNLIMITED)
_TEXT_MAP: Final = declared_map(declared.STRING, declared.STRING, _UNLIMITED)


def _kind_of_texts(name: str, *fields: str) -> DeclaredType:
    return declared_object(name, dict.fromkeys(fields, declared.STRING))


_KIND: Final = _kind_of_texts("kubernetes.GroupVersionKind", "group", "version", "kind")
_RESOURCE: Final = _kind_of_texts("kubernetes.GroupVersionResource", "group", "version", "resource")
_USER: Final = declared_object(
    "kubernetes.UserInfo",
    {
        "username": declared.STRING,
        "uid": declared.STRING,
        "groups": _TEXTS,
        "extra": declared_map(declared.STRING, _TEXTS, _UNLIMITED),
    },
)
REQUEST_TYPE: Final = declared_object(
    "kubernetes.AdmissionRequest",
    {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": declared.STRING,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": declared.STRING,
        "name": declared.STRING,
        "namespace": declared.STRING,
        "operation": declared.STRING,
        "userInfo": _USER,
        "dryRun": declared.BOOL,
        "options": declared.DYN,
    },
)
_CONDITION: Final = declared_object(
    "kubernetes.NamespaceCondition",
    {
        "status": declared.STRING,
        "type": declared.STRING,
        "lastTransitionTime": declared.TIMESTAMP,
        "message": declared.STRING,
        "reason": declared.STRING,
    },
)
_NAMESPACE_METADATA: Final = declared_object(
    "kubernetes.NamespaceMetadata",
    {
        "name": declared.STRING,
        "generateName": declared.STRING,
        "namespace": declared.STRING,
        "labels": _TEXT_MAP,
        "annotations": _TEXT_MAP,
        "UID": declared.STRING,
        "creationTimestamp": declared.TIMESTAMP,
        "deletionGracePeriodSeconds": declared.INT,
        "deletionTimestamp": declared.TIMESTAMP,
        "generation": declared.INT,
        "resourceVersion": declared.STRING,
        "finalizers": _TEXTS,
    },
)
NAMESPACE_TYPE: Final = declared_object(
    "kubernetes.Namespace",
    {
        "metadata": _NAMESPACE_METADATA,
        "spec": declared_object("kubernetes.NamespaceSpec", {"finalizers": _TEXTS}),
        "status": declared_object(
            "kubernetes.NamespaceStatus",
            {"conditions": declared_list(_CONDITION, _UNLIMITED), "phase": declared.STRING},
        ),
    },
)
"""Type of the namespace. As upstream, its times are declared as timestamps, but their values are strings."""


@cache
def environment(*, params: bool, authorizer: bool, patches: bool = False) -> Environment:
    """Return the environment of an expression.

    With `params` and `authorizer` it has variables of these names. With `patches` an expression may construct objects
    and JSON patches.
    """
    if patches:
        return environment(params=params, authorizer=authorizer).constructing(constructed, JSON_PATCHES)
    variables: dict[str, Type] = {
        OBJECT: types.DYN,
        OLD_OBJECT: types.DYN,
        NAMESPACE_OBJECT: NAMESPACE_TYPE.type,
        REQUEST: REQUEST_TYPE.type,
    }
    if params:
        variables[PARAMS] = types.DYN
    if authorizer:
        variables[AUTHORIZER_NAME] = AUTHORIZER
        variables[REQUEST_RESOURCE] = RESOURCE_CHECK
    objects = {each.type.name: each for root in (NAMESPACE_TYPE, REQUEST_TYPE) for each in root.objects()}
    return base_environment().about(variables, objects)

"""CustomResourceDefinitions of kwok's kinds, with the fields of kwok 0.8."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from steersman.cluster.definitions import manifest
from steersman.nodes.stages.stage_objects import GROUP, VERSION

Schema = dict[str, Any]

_TEXT: Final[Schema] = {"type": "string"}
_NOT_EMPTY: Final[Schema] = {"type": "string", "minLength": 1}
_FLAG: Final[Schema] = {"type": "boolean"}
_WHOLE: Final[Schema] = {"type": "integer", "format": "int64"}
_MILLISECONDS: Final[Schema] = {"type": "integer", "format": "int64", "minimum": 0}
_AMOUNT: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)


def definitions() -> list[dict[str, Any]]:
    """Return the definitions as manifests."""
    return [
        _definition(kind, plural, spec, described, namespaced=namespaced)
        for kind, plural, described, spec, namespaced in _all_kinds()
    ]


def _all_kinds() -> list[tuple[str, str, str, Schema, bool]]:
    kinds = [
        ("Stage", "stages", "Step in the life of objects of a kind.", _stage(), False),
        ("Metric", "metrics", "Metrics of simulated nodes at a path.", _metric(), False),
    ]
    of_pods: list[tuple[str, str, str, Callable[[], Schema]]] = [
        ("Attach", "attaches", "Output for kubectl attach", _attaches),
        ("Exec", "execs", "Environment of commands", _execs),
        ("Logs", "logs", "Logs", _logs),
        ("PortForward", "portforwards", "Targets of port forwarding", _forwards),
        ("ResourceUsage", "resourceusages", "Usage of resources", _usages),
    ]
    for kind, plural, described, list_ in of_pods:
        name = {"attaches": "attaches", "portforwards": "forwards", "resourceusages": "usages"}.get(plural, plural)
        required = [] if name == "usages" else [name]
        spec = {name: list_()}
        kinds.append((kind, plural, f"{described} of the pod of the same name.", _object(spec, *required), True))
        spec = {**spec, "selector": _object({"matchNamespaces": _list(_TEXT), "matchNames": _list(_TEXT)})}
        kinds.append((f"Cluster{kind}", f"cluster{plural}", f"{described} of pods.", _object(spec, *required), False))
    return kinds


def _definition(kind: str, plural: str, spec: Schema, described: str, *, namespaced: bool) -> dict[str, Any]:
    required = ("spec",) if kind == "Stage" else ("metadata", "spec")
    schema = _object({"metadata": {"type": "object"}, "spec": spec, "status": _status()}, *required)
    return manifest(GROUP, VERSION, kind, plural, {**schema, "description": described}, namespaced=namespaced)


def _object(properties: Schema, *required: str) -> Schema:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _keyed(items: Schema, key: str) -> Schema:
    return {**_list(items), "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}


def _map(values: Schema) -> Schema:
    return {"type": "object", "additionalProperties": values}


def _one_of(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


def _status() -> Schema:
    condition = {
        "type": {
            "type": "string",
            "maxLength": 316,
            "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
            r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        },
        "status": _TEXT,
        "reason": {
            "type": "string",
            "minLength": 1,
            "maxLength": 1024,
            "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        },
        "message": {"type": "string", "maxLength": 32768},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
    }
    required = ("lastTransitionTime", "message", "reason", "status", "type")
    return _object({"conditions": _keyed(_object(condition, *required), "type")})


def _stage() -> Schema:
    expression = _object({"expression": _TEXT})
    source = _object({"cel": expression, "jq": expression, "expressionFrom": _TEXT})
    user = _object({"username": _TEXT}, "username")
    event = _object({"type": _TEXT, "reason": _TEXT, "message": _TEXT})
    values = _list(_object({"value": _TEXT}))
    finalizers = _object({"add": values, "remove": values, "empty": _FLAG})
    patch = {
        "subresource": _TEXT,
        "root": _TEXT,
        "template": _TEXT,
        "type": _one_of("json", "merge", "strategic"),
        "impersonation": user,
    }
    apply = {
        "subresource": _TEXT,
        "template": _TEXT,
        "type": _one_of("apply", "merge", "strategic"),
        "impersonation": user,
    }
    step = {
        "event": event,
        "finalizers": finalizers,
        "delete": _FLAG,
        "patch": _object(patch),
        "apply": _object(apply),
    }
    next_ = {
        "event": event,
        "finalizers": finalizers,
        "delete": _FLAG,
        "patches": _list(_object(patch)),
        "statusTemplate": _TEXT,
        "statusSubresource": {**_TEXT, "default": "status"},
        "statusPatchAs": user,
    }
    requirement = {"key": _TEXT, "operator": _TEXT, "values": _list(_TEXT)}
    match = _object({**requirement, "jq": _object(requirement), "cel": expression})
    selector = {"matchLabels": _map(_TEXT), "matchAnnotations": _map(_TEXT), "matchExpressions": _list(match)}
    delay = {
        "durationMilliseconds": _MILLISECONDS,
        "durationFrom": source,
        "jitterDurationMilliseconds": _MILLISECONDS,
        "jitterDurationFrom": source,
    }
    spec = {
        "resourceRef": _object({"apiGroup": {**_TEXT, "default": "v1"}, "kind": _TEXT}, "kind"),
        "selector": _object(selector),
        "weight": {"type": "integer", "minimum": 0, "default": 0},
        "weightFrom": source,
        "delay": _object(delay),
        "next": _object(next_),
        "immediateNextStage": _FLAG,
        "steps": _list(_object(step)),
    }
    return _object(spec, "resourceRef")


def _metric() -> Schema:
    bucket = _object({"le": {"type": "number", "minimum": 0}, "value": _TEXT, "hidden": _FLAG}, "le", "value")
    label = _object({"name": _NOT_EMPTY, "value": _NOT_EMPTY}, "name", "value")
    metric = {
        "name": _NOT_EMPTY,
        "help": _TEXT,
        "kind": _one_of("counter", "gauge", "histogram"),
        "labels": _keyed(label, "name"),
        "value": _TEXT,
        "buckets": _keyed(bucket, "le"),
        "dimension": {**_TEXT, "default": "node"},
    }
    return _object({"path": _NOT_EMPTY, "metrics": _list(_object(metric, "kind", "name"))}, "metrics", "path")


def _attaches() -> Schema:
    return _list(_object({"containers": _list(_TEXT), "logsFile": _TEXT}))


def _execs() -> Schema:
    variable = _object({"name": _NOT_EMPTY, "value": _TEXT}, "name")
    user = _object({"runAsUser": _WHOLE, "runAsGroup": _WHOLE})
    local = _object({"workDir": _TEXT, "envs": _list(variable), "securityContext": user})
    return _list(_object({"containers": _list(_TEXT), "local": local}))


def _logs() -> Schema:
    return _list(_object({"containers": _list(_TEXT), "logsFile": _TEXT, "previousLogsFile": _TEXT, "follow": _FLAG}))


def _forwards() -> Schema:
    port = {"type": "integer", "format": "int32"}
    target = _object({"address": _NOT_EMPTY, "port": {**port, "minimum": 0, "maximum": 65535}}, "address", "port")
    return _list(_object({"ports": _list(port), "target": target, "command": _list(_TEXT)}))


def _usages() -> Schema:
    amount = {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": _AMOUNT,
        "x-kubernetes-int-or-string": True,
    }
    usage = _object({"value": amount, "expression": _TEXT})
    return _list(_object({"containers": _list(_TEXT), "usage": _map(usage)}))

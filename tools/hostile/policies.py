"""Admission policies whose expressions cost little and do much, or of which there is very much, and a write they judge.

Each shape of a policy is sent, and then stands while a small ConfigMap is written that it is about. There is one policy
at a time; those of other cases are about nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, Final

from .case import ADMIN, NAMESPACE, NARROW, Case, Request, Target, numbered, repeated

Plain = dict[str, Any]
Shape = Callable[[int], Plain]
"""The spec of a policy of about so many bytes, as far as it differs; `kind` is validating or mutating."""

CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1"
LABEL: Final = {"hostile": "admission"}
"""Label of the objects that policies and webhooks of these cases match."""
_JSON: Final = (("Content-Type", "application/json"), ("Connection", "close"))
_COLLECTION: Final = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
_RULES: Final = [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]
_KINDS: Final = (
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
)
_number: Final = count()


def _doubled(size: int) -> int:
    """Return the number of doublings for a size: beyond what can be iterated for larger sizes."""
    return min(size // 1000, 60)


def _chain(name: str, length: int, first: str, more: str) -> list[Plain]:
    """Variables of which each is made of the one before, which `more` calls PREVIOUS."""
    texts = [first, *(more.replace("PREVIOUS", f"variables.{name}{each}") for each in range(length - 1))]
    return [{"name": f"{name}{each}", "expression": text} for each, text in enumerate(texts)]


def _validating(make: Callable[[int], str]) -> Shape:
    return lambda size: {"validations": [{"expression": make(size)}]}


def _of_doubled(expression: str) -> Shape:
    """LAST and OTHER are lists that hold the one before twice."""

    def shape(size: int) -> Plain:
        length = _doubled(size) + 1
        variables = [
            *_chain("v", length, "dyn([1])", "dyn([PREVIOUS, PREVIOUS])"),
            *_chain("w", length, "dyn([1])", "dyn([PREVIOUS, PREVIOUS])"),
        ]
        text = expression.replace("LAST", f"variables.v{length - 1}").replace("OTHER", f"variables.w{length - 1}")
        return {"variables": variables, "validations": [{"expression": text}]}

    return shape


def _mutating(make: Callable[[int], list[Plain]], **more: Any) -> Shape:
    return lambda size: {"kind": "mutating", "mutations": make(size), **more}


def _patch(expression: str) -> Plain:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def _apply(expression: str) -> Plain:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def _twice(size: int) -> str:
    return "[[1]]" + ".map(x, [x, x])" * _doubled(size)


def _operations(size: int, value: str) -> str:
    return f"lists.range({size // 300}).map(i, JSONPatch{{op: 'add', path: '/data/x', value: {value}}})"


SHAPES: Final[Mapping[str, Shape]] = {
    # Cheap expressions with large results
    "equal-doubled": _of_doubled("LAST == OTHER"),
    "in-doubled": _of_doubled("LAST in [OTHER]"),
    "format-doubled": _of_doubled("'%s'.format([LAST]) == ''"),
    "flatten-doubled": _of_doubled("dyn(LAST).flatten(100).size() > 0"),
    "sorted-doubled": _of_doubled("dyn(LAST).isSorted()"),
    "sets-doubled": _of_doubled("sets.contains([LAST], [OTHER])"),
    "equal-maps": _validating(
        lambda size: " == ".join(["[{'a': 1}]" + ".map(x, {'a': x, 'b': x})" * _doubled(size)] * 2)
    ),
    "lists-joined": lambda size: {
        "variables": _chain("v", _doubled(size) + 1, "[1, 1]", "PREVIOUS + PREVIOUS"),
        "validations": [{"expression": f"variables.v{_doubled(size)}.size() > 0"}],
    },
    "distinct": _validating(lambda size: f"lists.range({size // 10}).distinct().size() > 0"),
    "sets": _validating(lambda size: f"sets.contains(lists.range({size // 10}), lists.range({size // 10}))"),
    "loops": _validating(
        lambda size: f"lists.range({size // 300}).all(a, lists.range({size // 300}).all(b, a + b >= 0))"
    ),
    "range": _validating(lambda size: f"lists.range({size // 3}).size() > 0"),
    "sort": _validating(lambda size: f"lists.range({size // 10}).map(x, 0 - x).sort().size() > 0"),
    "join": _validating(lambda size: f"lists.range({size // 10}).map(x, '{'x' * 1000}').join().size() > 0"),
    "replace": _validating(
        lambda size: f"'{repeated('a', size // 100)}'.replace('', '{repeated('b', size // 100)}').size() > 0"
    ),
    "find-all": _validating(lambda size: f"'{repeated('a', size // 10)}'.findAll('a|').size() > 0"),
    "matches": _validating(lambda size: f"'{repeated('a', size // 10)}'.matches('(a|aa)+(.*)(.*)b$')"),
    "deep-variables": lambda size: {
        "variables": _chain("v", size // 60, "dyn([1])", "dyn([PREVIOUS])"),
        "validations": [{"expression": f"size(variables.v{size // 60 - 1}) == 1"}],
    },
    # Very much of everything
    "validations": lambda size: {"validations": [{"expression": f"{each} > 0"} for each in range(1, size // 30)]},
    "variables": lambda size: {
        "variables": [{"name": each, "expression": "1"} for each in numbered("v{i}", size // 5)],
        "validations": [{"expression": "variables.v0 == 1"}],
    },
    "costly-variables": lambda size: {
        "variables": [
            {"name": each, "expression": "lists.range(900).all(a, lists.range(900).all(b, true))"}
            for each in numbered("v{i}", size // 15)
        ],
        "validations": [{"expression": " && ".join(f"variables.{each}" for each in numbered("v{i}", size // 15))}],
    },
    "annotations": lambda size: {
        "auditAnnotations": [{"key": each, "valueExpression": "'a'"} for each in numbered("k{i}", min(size // 10, 100))]
    },
    "warnings": lambda size: {
        "validations": [{"expression": "false", "message": each} for each in numbered("m{i}", size // 8)]
    },
    "messages": lambda size: {
        "validations": [
            {"expression": "false", "messageExpression": f"'{each}'"} for each in numbered("m{i}", size // 9)
        ]
    },
    "rules": lambda size: {
        "validations": [{"expression": "true"}],
        "rules": [{**_RULES[0], "resources": [each]} for each in numbered("r{i}", size // 20)],
    },
    "names": lambda size: {
        "validations": [{"expression": "true"}],
        "rules": [{**_RULES[0], "resourceNames": numbered("n{i}", size)}],
    },
    "selector": lambda size: {
        "validations": [{"expression": "true"}],
        "selector": [{"key": each, "operator": "DoesNotExist"} for each in numbered("k{i}", size // 10)],
    },
    # Mutations
    "patch-doubled": _mutating(
        lambda size: [_patch(f"[JSONPatch{{op: 'add', path: '/data/x', value: {_twice(size)}}}]")]
    ),
    "apply-doubled": _mutating(lambda size: [_apply(f"Object{{data: {_twice(size)}}}")]),
    "patch-objects": _mutating(lambda size: [_patch(_operations(size, "object"))]),
    "patch-operations": _mutating(lambda size: [_patch(_operations(size, "'a'"))]),
    "patch-grows": _mutating(
        lambda size: (
            [_patch("[JSONPatch{op: 'add', path: '/data/a', value: object.data.a + object.data.a}]")]
            * min(size // 1000, 40)
        )
    ),
    "patches": _mutating(
        lambda size: [
            _patch(f"[JSONPatch{{op: 'add', path: '/data/{each}', value: 'b'}}]")
            for each in numbered("k{i}", size // 20)
        ]
    ),
}


def cleared(target: Target) -> None:
    """Takes away the policies and webhooks of the cases before."""
    for plural in _KINDS:
        target.ask(Request("DELETE", f"{CONFIGURATIONS}/{plural}", (("Connection", "close"),), token=ADMIN))


def written() -> Request:
    """A small ConfigMap that policies and webhooks are about."""
    body = {"metadata": {"name": f"admitted-{next(_number)}", "labels": LABEL}, "data": {"a": "b"}}
    return Request("POST", _COLLECTION, _JSON[:1], json.dumps(body).encode(), NARROW)


def _policy(shape: Shape, size: int) -> tuple[str, Plain]:
    more = shape(size)
    kind = more.pop("kind", "validating")
    match = {
        "resourceRules": more.pop("rules", _RULES),
        "objectSelector": {"matchLabels": LABEL, "matchExpressions": more.pop("selector", [])},
    }
    if kind == "mutating":
        more = {"reinvocationPolicy": "IfNeeded", **more}
    return kind, {"metadata": {"name": "hostile"}, "spec": {"matchConstraints": match, "failurePolicy": "Fail", **more}}


def _created(shape: Shape, size: int, target: Target) -> Request:
    cleared(target)
    kind, policy = _policy(shape, size)
    path = f"{CONFIGURATIONS}/{kind}admissionpolicies"
    return Request("POST", path, _JSON[:1], json.dumps(policy).encode(), ADMIN)


def _enforced(shape: Shape, size: int, target: Target) -> Request | None:
    request = _created(shape, size, target)
    code, _ = target.ask(Request("POST", request.target, _JSON, request.body, ADMIN))
    if code != 201:
        return None
    spec: Plain = {"policyName": "hostile"}
    if "validating" in request.target:
        spec["validationActions"] = ["Warn"]
    body = json.dumps({"metadata": {"name": "hostile"}, "spec": spec}).encode()
    path = request.target.replace("policies", "policybindings")
    return written() if target.ask(Request("POST", path, _JSON, body, ADMIN))[0] == 201 else None


def cases() -> Iterator[Case]:
    """Every shape, as it is written and as it is enforced."""
    for name, shape in SHAPES.items():
        yield Case(f"policies/{name}/create", _case(_created, shape), group=name)
        yield Case(f"policies/{name}/enforce", _case(_enforced, shape), group=name)


def _case(
    make: Callable[[Shape, int, Target], Request | None], shape: Shape
) -> Callable[[int, Target], Request | None]:
    return lambda size, target: make(shape, size, target)

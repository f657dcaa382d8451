"""Random admission policies, and requests that they are about.

Upstream finds out about a policy within a second, so several cases are best played at the same time (`--jobs`); each
has a namespace of its own, and its policies are about that alone.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

from .case import NAME, Case, Step

_SEEN: Final = 2.0
"""Seconds in which upstream finds out about a policy."""
COLLECTION: Final = "/apis/admissionregistration.k8s.io/v1/{}admission{}"
_VALUES: Final = (
    "object",
    "oldObject",
    "request",
    "namespaceObject",
    "params",
    "variables.a",
    "variables.b",
    "object.data",
    "object.metadata.labels",
    "object.data.n",
    "object.spec.replicas",
    "request.userInfo.groups",
    "request.operation",
    "request.name",
    "request.namespace",
    "request.options",
    "request.kind.kind",
    "request.resource.resource",
    "request.subResource",
    "namespaceObject.metadata.labels",
    "params.data.n",
    "authorizer",
    "oldObject.data.n",
    "authorizer.requestResource",
    "object.metadata.name",
    "object.metadata.namespace",
    "object.kind",
    "1",
    "'x'",
    "true",
    "null",
    "[1, 2]",
    "{'a': 'b'}",
    "2.5",
    "1u",
    "b'x'",
    "duration('1s')",
    "timestamp('2020-01-01T00:00:00Z')",
    "quantity('1Ki')",
    "'a b'.split(' ')",
    "optional.none()",
    "optional.of('y')",
    "type(1)",
    "semver('1.2.3-a+b')",
)
_FIELDS: Final = (
    "object.data.n",
    "object.spec.replicas",
    "object.metadata.labels",
    "variables.a",
    "params.data.n",
    "oldObject.data",
    "request.subResource",
    "namespaceObject.metadata.annotations",
)
_FORMS: Final = (
    "{0} == {1}",
    "{0} != {1}",
    "({0}) && ({1})",
    "({0}) || ({1})",
    "!({0})",
    "size({0}) > 1",
    "{0} in {1}",
    "{0}.startsWith({1})",
    "string({0}) == 'x'",
    "int({0}) < 3",
    "{0}.exists(k, k == {1})",
    "{0}.all(k, k != {1})",
    "({0}) ? ({1}) : ({2})",
    "{0}.?n.orValue('z') == 'z'",
    "{0} + {1} == {2}",
    "{0} > {1}",
    "type({0}) == string",
    "dyn({0}) == {1}",
    "authorizer.group('').resource('pods').namespace({0}).check('get').allowed()",
    "authorizer.requestResource.check({0}).reason() == ''",
    "authorizer.serviceAccount('default', {0}).path('/healthz').check('get').allowed()",
    "{0}.matches('^[a-z]+$')",
    "string({0}).matches('^[a-z0-9]+' + '$')",
    "'a1'.matches({0})",
    "'a'.matches('[')",
    "string({0}).find('[0-9]+') != ''",
    "string({0}).findAll('[a-z]', 2).size() > 1",
    "string({0}).contains({1})",
    "string({0}).split('-').size() > 1",
    "string({0}).replace('a', 'b', 1) == {1}",
    "string({0}).charAt(0) == 'a'",
    "string({0}).lowerAscii() == {1}",
    "isQuantity(string({0}))",
    "isURL(string({0}))",
    "isIP(string({0}))",
    "format.dns1123Label().validate(string({0})).hasValue()",
    "[{0}, {1}].isSorted()",
    "sets.contains([1, {0}], [{1}])",
    "semver('1.2.3').isLessThan(semver(string({0})))",
    "cidr('10.0.0.0/8').containsIP(string({0}))",
    "dyn({0}) != {1}",
    "-dyn({0}) == {1}",
    "!dyn({0})",
    "dyn({0})[{1}] == {2}",
    "[dyn({0})] == [dyn({1})]",
    "dyn({0}) + {1} == {2}",
    "{{'a': dyn({0})}} == {{'a': dyn({1})}}",
    "dyn({0}).exists(x, x == {1})",
    "dyn({0}) - {1} == {2}",
    "{0} in [dyn({1})]",
    "string(dyn({0})).matches(string(dyn({1})))",
)
_BOOLEANS: Final = (
    "{0}",
    "({0}) == true",
    "dyn({0}) == true || object != null",
    "!(dyn({0}) == 1)",
    "string({0}).size() < 3",
    "true",
)
_TEXTS: Final = (
    "string({0})",
    "'m: ' + string({0})",
    "dyn({0}) == 1 ? 'a' : 'b'",
    "'text'",
    "object.metadata.name + 'x'",
    "'%s'.format([{0}])",
    r"'a\nb'",
    "'  '",
)
_CONFIGURATIONS: Final = (
    "Object{{data: {{'p': {0}}}}}",
    "Object{{metadata: Object.metadata{{annotations: {{'p': {0}}}}}}}",
    "Object{{spec: Object.spec{{replicas: {0}}}}}",
    "{0} ? Object{{}} : Object{{data: {{'q': 'r'}}}}",
    "Object{{data: Object.data{{?p: object.?data.n}}}}",
    "Object{{data: {0}}}",
    "Object{{metadata: {{'labels': {0}}}}}",
    "Object{{metadata: Object.metadata{{labels: {{'a': {0}}}, finalizers: [{0}]}}}}",
    "Object{{metadata: {{'labels': {{'a': {0}}}}}}}",
    "Object{{spec: Object.spec{{template: {0}}}}}",
    "Object{{metadata: Object.metadata{{finalizers: {0}}}}}",
    "Object{{immutable: {0}}}",
)
_PATCHES: Final = (
    "[JSONPatch{{op: 'add', path: '/metadata/annotations', value: {{'p': {0}}}}}]",
    "[JSONPatch{{op: 'replace', path: '/data/n', value: {0}}}]",
    "[JSONPatch{{op: 'add', path: '/spec/replicas', value: {0}}}]",
    "[JSONPatch{{op: 'add', path: '/kind', value: {0}}}]",
    "[JSONPatch{{op: 'add', path: '/apiVersion', value: {0}}}]",
    "[JSONPatch{{op: 'add', path: '/metadata/labels', value: {{'a': {0}}}}}]",
    "[JSONPatch{{op: 'test', path: '/data/n', value: {0}}}, JSONPatch{{op: 'add', path: '/data/z', value: 'w'}}]",
)


def cases(random: Random) -> Case:
    """A namespace, a parameter in it, one or two policies with bindings, and some requests."""
    return _Policies(random).case()


class _Policies:
    def __init__(self, random: Random) -> None:
        self.random = random

    def case(self) -> Case:
        random = self.random
        steps = [
            Step("POST", "/api/v1/namespaces", {"metadata": {"name": NAME}}),
            Step("POST", f"/api/v1/namespaces/{NAME}/configmaps", {"metadata": {"name": "par"}, "data": {"n": "5"}}),
        ]
        paths: list[str] = []
        for which in random.choice((("validating",), ("validating",), ("mutating",), ("mutating", "validating"))):
            spec = self._policy(which)
            for what, body in (("policies", spec), ("policybindings", self._binding(which, spec))):
                collection = COLLECTION.format(which, what)
                pause = _SEEN if what == "policybindings" else 0.0
                steps.append(Step("POST", collection, {"metadata": {"name": NAME}, "spec": body}, pause=pause))
                paths.insert(0, f"{collection}/{NAME}")
        steps += self._requests()
        cleanup = [*(Step("DELETE", path) for path in paths), Step("DELETE", f"/api/v1/namespaces/{NAME}")]
        return Case("policies", steps, cleanup, is_slow=True)

    # Expressions

    def _expression(self, depth: int) -> str:
        random = self.random
        if depth == 0 or random.random() < 0.15:
            value = random.choice(_VALUES)
            return f"dyn({value})" if random.random() < 0.4 else value
        if random.random() < 0.1:
            return f"has({random.choice(_FIELDS)})"
        return self._filled(random.choice(_FORMS), depth - 1)

    def _filled(self, form: str, depth: int) -> str:
        return form.format(*(self._expression(depth) for _ in range(3)))

    def _boolean(self) -> str:
        return self._filled(self.random.choice(_BOOLEANS), self.random.choice((1, 2)))

    def _text(self) -> str:
        return self._filled(self.random.choice(_TEXTS), 1)

    # Policies

    def _policy(self, which: str) -> dict[str, Any]:
        random = self.random
        operations = ["CREATE", "UPDATE"] if which == "mutating" else ["*"]
        rules = [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": operations, "resources": ["configmaps"]},
            {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": operations, "resources": ["deployments/*"]},
        ]
        mine = {"matchLabels": {"kubernetes.io/metadata.name": NAME}}
        spec: dict[str, Any] = {"matchConstraints": {"resourceRules": rules, "namespaceSelector": mine}}
        spec |= self._maybe(0.3, lambda: {"failurePolicy": random.choice(("Ignore", "Fail"))})
        spec |= self._maybe(0.5, lambda: {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}})
        spec |= self._maybe(0.6, lambda: {"variables": self._variables()})
        spec |= self._maybe(0.4, lambda: {"matchConditions": self._conditions()})
        if which == "mutating":
            mutations = [self._mutation() for _ in range(random.choice((1, 1, 2)))]
            return spec | {"mutations": mutations, "reinvocationPolicy": random.choice(("Never", "IfNeeded"))}
        spec["validations"] = [self._validation() for _ in range(random.choice((1, 1, 2, 3)))]
        return spec | self._maybe(0.3, lambda: {"auditAnnotations": [{"key": "k", "valueExpression": self._text()}]})

    def _maybe(self, odds: float, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        return make() if self.random.random() < odds else {}

    def _variables(self) -> list[dict[str, str]]:
        second = self.random.choice((self._expression(1), "variables.a", "[variables.a]"))
        return [{"name": "a", "expression": self._expression(1)}, {"name": "b", "expression": second}]

    def _conditions(self) -> list[dict[str, str]]:
        given = (self._boolean(), "request.operation != 'DELETE'")
        return [{"name": f"m{index}", "expression": each} for index, each in enumerate(given)]

    def _validation(self) -> dict[str, Any]:
        random = self.random
        validation: dict[str, Any] = {"expression": self._boolean()}
        validation |= self._maybe(0.4, lambda: {"message": random.choice(("no", " spaces "))})
        validation |= self._maybe(0.4, lambda: {"messageExpression": self._text()})
        reasons = ("Forbidden", "Invalid", "RequestEntityTooLarge")
        return validation | self._maybe(0.3, lambda: {"reason": random.choice(reasons)})

    def _mutation(self) -> dict[str, Any]:
        random = self.random
        is_patch = random.random() < 0.5
        value = random.choice(
            (
                "'v'",
                "2",
                "string(object.metadata.name)",
                f"string({self._expression(1)})",
                self._expression(0),
                self._expression(0),
            )
        )
        form = random.choice(_PATCHES if is_patch else _CONFIGURATIONS)
        expression = {"expression": form.format(value if random.random() < 0.8 else self._expression(1))}
        if is_patch:
            return {"patchType": "JSONPatch", "jsonPatch": expression}
        return {"patchType": "ApplyConfiguration", "applyConfiguration": expression}

    def _binding(self, which: str, policy: dict[str, Any]) -> dict[str, Any]:
        random = self.random
        spec: dict[str, Any] = {"policyName": NAME}
        if which == "validating":
            spec["validationActions"] = random.choice((["Deny"], ["Deny"], ["Warn"], ["Deny", "Audit"]))
        if "paramKind" in policy and random.random() < 0.8:
            action = random.choice(("Deny", "Allow"))
            spec["paramRef"] = {"name": random.choice(("par", "none")), "parameterNotFoundAction": action}
        return spec

    # Requests

    def _requests(self) -> list[Step]:
        maps, deployments = (
            f"/{root}/namespaces/{NAME}/{plural}"
            for root, plural in (("api/v1", "configmaps"), ("apis/apps/v1", "deployments"))
        )
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        return [
            Step("POST", f"{maps}?dryRun=All", {"metadata": {"name": "x", "labels": {"l": "1"}}, "data": {"n": "1"}}),
            Step("POST", maps, {"metadata": {"name": "x"}}),
            Step("PUT", f"{maps}/x", {"metadata": {"name": "x"}, "data": {"n": "2"}}),
            Step("POST", deployments, {"metadata": {"name": "d"}, "spec": spec}),
            Step("PATCH", f"{deployments}/d/scale", {"spec": {"replicas": 3}}, "application/merge-patch+json"),
            Step("DELETE", f"{maps}/x"),
        ]

"""Random configurations of admission webhooks, and requests that they may be asked about.

What the webhooks were asked is compared as the answers are. Upstream finds out about a configuration after a while, so
several cases are best played at the same time (`--jobs`); each has a namespace of its own.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any, Final

from .case import NAME, RECEIVED, Case, Step
from .recording_hook import BEHAVIOURS

HOOK: Final = "@HOOK@"
"""Stands, in bodies, for where a server asks the webhook."""
CA: Final = "@CA@"

_MERGE: Final = "application/merge-patch+json"
_APPLY: Final = "application/apply-patch+yaml"
_SEEN: Final = 0.9
"""Seconds in which upstream finds out about a configuration."""
_CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
_ALLOWING: Final = ("allow", "warn", "annotate")
_CHANGING: Final = ("label", "annotation", "data", "spec", "unknown", "empty-patch", "remove")
_GOOD: Final = (*_ALLOWING, *_CHANGING)
_EVERY: Final = tuple(BEHAVIOURS)
_CONDITIONS: Final = (
    "true",
    "false",
    "request.operation == 'CREATE'",
    "has(object.data) && size(object.data) > 0",
    "object.metadata.name.startsWith('case')",
    "oldObject == null",
    "request.userInfo.username == 'nobody'",
    "object.nosuch == 1",
    "request.name == 'x'",
    "has(request.subResource) && request.subResource == 'scale'",
    "'system:masters' in request.userInfo.groups",
    "authorizer.group('').resource('pods').check('get').allowed()",
    "authorizer.requestResource.check('delete').reason() != ''",
    "request.options.kind == 'CreateOptions'",
    "object.metadata.name.matches('^[a-z]+$')",
    "request.name.find('[0-9]') == ''",
    "request.dryRun",
    "request.kind.group == 'apps' || request.resource.resource == 'configmaps'",
)


def cases(random: Random) -> Case:
    """A namespace, one or two configurations, some requests, and what was asked for each."""
    return _Webhooks(random).case()


class _Webhooks:
    def __init__(self, random: Random) -> None:
        self.random = random

    def case(self) -> Case:
        random = self.random
        namespace = {"metadata": {"name": NAME, "labels": {"team": random.choice(("a", "b"))}}}
        steps = [Step("POST", "/api/v1/namespaces", namespace)]
        paths = []
        for which in random.choice((("mutating",), ("validating",), ("mutating", "validating"))):
            collection = _CONFIGURATIONS.format(which)
            paths.append(f"{collection}/{NAME}")
            steps.append(Step("POST", collection, self._configuration(which), pause=_SEEN))
        for _ in range(random.choice((2, 3, 4))):
            for step in self._requests():
                steps += [step, Step(RECEIVED, NAME)]
        cleanup = [*(Step("DELETE", path) for path in paths), Step("DELETE", f"/api/v1/namespaces/{NAME}")]
        return Case("webhooks", steps, cleanup, is_slow=True)

    def _maybe(self, odds: float, **members: Any) -> dict[str, Any]:
        return members if self.random.random() < odds else {}

    # Configurations

    def _configuration(self, which: str) -> dict[str, Any]:
        kind = f"{which.capitalize()}WebhookConfiguration"
        webhooks = [self._webhook(number, which) for number in range(self.random.choice((1, 1, 2, 3)))]
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": NAME},
            "webhooks": webhooks,
        }

    def _webhook(self, number: int, which: str) -> dict[str, Any]:
        random = self.random
        of = _EVERY if random.random() < 0.4 else _GOOD if which == "mutating" else _ALLOWING
        behaviour = random.choice(of)
        mine = {"matchLabels": {"kubernetes.io/metadata.name": NAME}}
        webhook: dict[str, Any] = {
            "name": f"w{number}.{which}.example.com",
            "clientConfig": {"url": f"{HOOK}/{NAME}/{which}{number}/{behaviour}", "caBundle": CA},
            "rules": [self._rule() for _ in range(random.choice((1, 1, 2)))],
            "namespaceSelector": mine | self._maybe(0.2, matchExpressions=[self._requirement("team")]),
            "sideEffects": random.choice(("None", "None", "NoneOnDryRun")),
            "admissionReviewVersions": random.choice((["v1"], ["v1"], ["v1beta1"], ["v1beta1", "v1"], ["v2", "v1"])),
            "timeoutSeconds": random.choice((5, 7)),
        }
        webhook |= self._maybe(0.3, failurePolicy=random.choice(("Ignore", "Fail")))
        webhook |= self._maybe(0.3, matchPolicy=random.choice(("Exact", "Equivalent")))
        webhook |= self._maybe(0.25, objectSelector={"matchExpressions": [self._requirement("app")]})
        if random.random() < 0.3:
            conditions = random.sample(_CONDITIONS, random.choice((1, 2)))
            webhook["matchConditions"] = [
                {"name": f"c{index}", "expression": expression} for index, expression in enumerate(conditions)
            ]
        if which == "mutating":
            webhook |= self._maybe(0.4, reinvocationPolicy="IfNeeded")
        return webhook

    def _requirement(self, key: str) -> dict[str, Any]:
        operator = self.random.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        values = {"values": self.random.sample(("a", "b", "web"), 2)} if operator.endswith("In") else {}
        return {"key": key, "operator": operator, **values}

    def _rule(self) -> dict[str, Any]:
        random = self.random
        operations = ["*"] if random.random() < 0.5 else random.sample(("CREATE", "UPDATE", "DELETE", "CONNECT"), 2)
        group, version, resources = random.choice(
            (
                ("*", "*", ["*"]),
                ("*", "*", ["*/*"]),
                ("", "v1", ["configmaps"]),
                ("", "*", ["configmaps", "pods/*"]),
                ("apps", "v1", ["deployments", "deployments/scale"]),
                ("apps", "*", ["*/scale"]),
                ("apps", "v1", ["*"]),
                ("autoscaling", "v1", ["horizontalpodautoscalers"]),
                ("autoscaling", "v2", ["*"]),
                ("events.k8s.io", "v1", ["events"]),
                ("", "v1", ["events", "namespaces"]),
                ("policy", "*", ["*"]),
                ("", "v1", ["serviceaccounts/token", "pods/eviction", "pods/binding", "pods/status"]),
            )
        )
        rule = {"operations": operations, "apiGroups": [group], "apiVersions": [version], "resources": resources}
        return rule | self._maybe(0.3, scope=random.choice(("*", "Namespaced", "Cluster")))

    # Requests

    def _requests(self) -> list[Step]:
        """Requests about one object."""
        random = self.random
        return random.choice(
            (
                self._config_map,
                self._config_map,
                self._deployment,
                self._autoscaler,
                self._event,
                self._pod,
                self._account,
                self._namespace,
            )
        )()

    def _head(self, api_version: str, kind: str, name: str) -> dict[str, Any]:
        metadata: dict[str, Any] = {"name": name}
        metadata |= self._maybe(0.4, labels={"app": self.random.choice(("a", "web"))})
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata}

    def _query(self) -> str:
        return self.random.choice(("", "", "", "?dryRun=All", "?fieldManager=me&fieldValidation=Strict"))

    def _config_map(self) -> list[Step]:
        random = self.random
        collection = f"/api/v1/namespaces/{NAME}/configmaps"
        name = f"c{random.randrange(1000)}"
        body = self._head("v1", "ConfigMap", name) | self._maybe(0.6, data={"a": "1"})
        if random.random() < 0.15:
            body["metadata"].pop("name")
            body["metadata"]["generateName"] = "some-gen-"
            return [Step("POST", collection + self._query(), body)]
        path = f"{collection}/{name}{self._query()}"
        later = random.sample(
            [
                Step("PUT", path, body | {"data": {"b": "2"}}),
                Step("PATCH", path, {"data": {"c": "3"}}, _MERGE),
                Step(
                    "PATCH",
                    path,
                    json.dumps([{"op": "add", "path": "/metadata/labels", "value": {"app": "b"}}]),
                    "application/json-patch+json",
                ),
                Step("PATCH", f"{collection}/{name}?fieldManager=m", body | {"data": {"d": "4"}}, _APPLY),
                Step("PATCH", f"{collection}/new?fieldManager=m", self._head("v1", "ConfigMap", "new"), _APPLY),
                Step("DELETE", path),
                Step("DELETE", f"{collection}?labelSelector=app"),
            ],
            3,
        )
        return [Step("POST", collection + self._query(), body), *later]

    def _deployment(self) -> list[Step]:
        collection = f"/apis/apps/v1/namespaces/{NAME}/deployments"
        name = f"d{self.random.randrange(1000)}"
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        scale = {"spec": {"replicas": self.random.choice((0, 3))}}
        return [
            Step("POST", collection, self._head("apps/v1", "Deployment", name) | {"spec": spec}),
            Step("PATCH", f"{collection}/{name}/scale{self._query()}", scale, _MERGE),
            Step("PATCH", f"{collection}/{name}/status", {"status": {"replicas": 1}}, _MERGE),
        ]

    def _autoscaler(self) -> list[Step]:
        version = self.random.choice(("v1", "v2"))
        collection = f"/apis/autoscaling/{version}/namespaces/{NAME}/horizontalpodautoscalers"
        name = f"h{self.random.randrange(1000)}"
        target = {"kind": "Foo", "name": "x", "apiVersion": "example.com/v1"}
        body = self._head(f"autoscaling/{version}", "HorizontalPodAutoscaler", name)
        body["spec"] = {"maxReplicas": 3, "scaleTargetRef": target}
        patch = Step("PATCH", f"{collection}/{name}", {"spec": {"minReplicas": 2}}, _MERGE)
        return [Step("POST", collection, body), patch, Step("DELETE", f"{collection}/{name}")]

    def _event(self) -> list[Step]:
        name = f"e{self.random.randrange(1000)}"
        body = self._head("v1", "Event", name)
        body |= {"involvedObject": {"kind": "Pod", "name": "p", "namespace": NAME}, "reason": "r", "type": "Normal"}
        return [Step("POST", f"/api/v1/namespaces/{NAME}/events", body)]

    def _pod(self) -> list[Step]:
        collection = f"/api/v1/namespaces/{NAME}/pods"
        name = f"p{self.random.randrange(1000)}"
        body = self._head("v1", "Pod", name)
        body["spec"] = {"containers": [{"name": "c", "image": "i"}]}
        account = {"metadata": {"name": "default"}}
        binding = {"target": {"kind": "Node", "name": "n"}, "metadata": {"name": name}}
        return [
            Step("POST", f"/api/v1/namespaces/{NAME}/serviceaccounts", account),
            Step("POST", collection, body),
            Step("POST", f"{collection}/{name}/binding", {"apiVersion": "v1", "kind": "Binding", **binding}),
            Step("PATCH", f"{collection}/{name}/status", {"status": {"phase": "Running"}}, _MERGE),
            Step("GET", f"{collection}/{name}/exec?command=ls&command=-l&stdout=1&tty=false"),
            Step(
                "POST",
                f"{collection}/{name}/eviction",
                {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}},
            ),
        ]

    def _account(self) -> list[Step]:
        collection = f"/api/v1/namespaces/{NAME}/serviceaccounts"
        name = f"a{self.random.randrange(1000)}"
        return [
            Step("POST", collection, self._head("v1", "ServiceAccount", name)),
            Step("DELETE", f"{collection}/{name}?propagationPolicy=Orphan"),
        ]

    def _namespace(self) -> list[Step]:
        path = f"/api/v1/namespaces/{NAME}"
        return [
            Step("PATCH", path, {"metadata": {"annotations": {"a": "b"}}}, _MERGE),
            Step("PATCH", f"{path}/status", {"metadata": {"annotations": {"c": "d"}}}, _MERGE),
        ]

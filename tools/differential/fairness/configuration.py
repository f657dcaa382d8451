"""Random flow schemas and priority levels: valid ones, and what is left of them after a change or two."""

from __future__ import annotations

import copy
from random import Random
from typing import Any, Final

from tools.differential.case import NAME, NAMESPACE

BASE: Final = "/apis/flowcontrol.apiserver.k8s.io/v1"
SCHEMAS: Final = f"{BASE}/flowschemas"
LEVELS: Final = f"{BASE}/prioritylevelconfigurations"
USERS: Final = tuple(f"{NAME}-u{number}" for number in range(3))
GROUPS: Final = tuple(f"{NAME}-g{number}" for number in range(2))
ACCOUNTS: Final = (f"{NAME}-a0", f"{NAME}-a1")

_VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "proxy")
_API_GROUPS: Final = ("", "apps", "batch", "nope.example.com", "coordination.k8s.io")
_RESOURCES: Final = (
    "configmaps",
    "pods",
    "pods/status",
    "pods/log",
    "deployments",
    "deployments/scale",
    "nodes",
    "things",
    "namespaces",
    "leases",
    "configmaps/*",
    "*/status",
    "pods/exec",
)
_PATHS: Final = (
    "/healthz",
    "/healthz/*",
    "/version",
    "/foo",
    "/foo/*",
    "/foo/bar/*",
    "/api",
    "/apis/*",
    "/metrics",
    "/openapi/*",
    "/",
    "/*",
)
_ODD: Final[tuple[Any, ...]] = (
    None,
    "",
    "*",
    0,
    1,
    -1,
    101,
    10_001,
    10_000_001,
    True,
    [],
    ["*", "get"],
    ["get", "get"],
    [""],
    {},
    "ByUser",
    "Limited",
    "Exempt",
    "Queue",
    "Reject",
    "User",
    "Group",
    "ServiceAccount",
    "a b",
    "A.B",
    "x" * 64,
    "x" * 254,
    ["/"],
    ["/a*"],
    ["a"],
    ["//a"],
    ["/a/*/b"],
    ["/a/**"],
    ["/a b"],
    ["*", "/a"],
    "@bad",
    [None],
    2**31,
    "1",
)
"""Values that are put where others were."""

Body = dict[str, Any]


def some(random: Random, choices: tuple[str, ...], chance_of_all: float = 0.3) -> list[str]:
    """A few of them, or `*` for all."""
    if random.random() < chance_of_all:
        return ["*"]
    return random.sample(choices, random.randint(1, min(3, len(choices))))


def subject(random: Random) -> Body:
    """Somebody whom a rule is about."""
    kind = random.random()
    if kind < 0.35:
        return {"kind": "User", "user": {"name": random.choice((*USERS, *USERS, "*", "system:anonymous"))}}
    if kind < 0.75:
        group = random.choice((*GROUPS, *GROUPS, "*", "system:authenticated", "system:unauthenticated"))
        return {"kind": "Group", "group": {"name": group}}
    account = {"namespace": random.choice((NAMESPACE, NAMESPACE, "default")), "name": random.choice((*ACCOUNTS, "*"))}
    return {"kind": "ServiceAccount", "serviceAccount": account}


def _resource_rule(random: Random) -> Body:
    rule: Body = {
        "verbs": some(random, _VERBS, 0.5),
        "apiGroups": some(random, _API_GROUPS, 0.5),
        "resources": some(random, _RESOURCES, 0.4),
    }
    if random.random() < 0.6:
        rule["namespaces"] = some(random, (NAMESPACE, "default", "kube-system"), 0.5)
    if "namespaces" not in rule or random.random() < 0.5:
        rule["clusterScope"] = True
    return rule


def _path_rule(random: Random) -> Body:
    return {"verbs": some(random, ("get", "create", "list"), 0.7), "nonResourceURLs": some(random, _PATHS, 0.2)}


def _rule(random: Random) -> Body:
    rule: Body = {"subjects": [subject(random) for _ in range(random.choice((1, 1, 2, 3)))]}
    what = random.random()
    if what < 0.8:
        rule["resourceRules"] = [_resource_rule(random) for _ in range(random.choice((1, 1, 2)))]
    if what > 0.6:
        rule["nonResourceRules"] = [_path_rule(random) for _ in range(random.choice((1, 1, 2)))]
    return rule


def flow_schema(random: Random, number: int, levels: tuple[str, ...]) -> Body:
    """A valid one that leads to one of the levels."""
    spec: Body = {
        "priorityLevelConfiguration": {"name": random.choice(levels)},
        "rules": [_rule(random) for _ in range(random.choice((0, 1, 1, 1, 2, 2, 3)))],
    }
    if random.random() < 0.9:
        spec["matchingPrecedence"] = random.choice((2, 5, 5, 50, 100, 199, 200, 400, 500, 900, 1000, 9999, 10000))
    if random.random() < 0.6:
        spec["distinguisherMethod"] = {"type": random.choice(("ByUser", "ByNamespace"))}
    return {
        "kind": "FlowSchema",
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "metadata": {"name": f"{NAME}-s{number}"},
        "spec": spec,
    }


def priority_level(random: Random, number: int) -> Body:
    """A valid one in which a request that is alone is let in."""
    response: Body = {"type": "Reject"}
    shares = random.choice((0, 1, 2, 5, 10, 30, 100))
    if shares and random.random() < 0.7:
        response = {"type": "Queue"}
        if random.random() < 0.8:
            queues = random.choice((1, 2, 8, 64, 128))
            hand = random.randint(1, min(queues, 6))
            response["queuing"] = {"queues": queues, "handSize": hand, "queueLengthLimit": random.choice((1, 10, 50))}
    limited: Body = {"limitResponse": response, "nominalConcurrencyShares": shares}
    if random.random() < 0.1 and shares:
        del limited["nominalConcurrencyShares"]
    if random.random() < 0.6:
        limited["lendablePercent"] = random.choice((0, 1, 33, 50, 90, 100))
    if random.random() < 0.5:
        limited["borrowingLimitPercent"] = random.choice((0, 10, 49, 50, 100, 250))
    return {
        "kind": "PriorityLevelConfiguration",
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "metadata": {"name": f"{NAME}-l{number}"},
        "spec": {"type": "Limited", "limited": limited},
    }


def spoiled(random: Random, body: Body) -> Body:
    """The body with a few changes in its spec, after which it may be valid or not."""
    found = copy.deepcopy(body)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        places = list(_places(found["spec"]))
        holder, key = random.choice(places)
        what = random.random()
        if what < 0.2:
            del holder[key]
        elif what < 0.35 and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        else:
            holder[key] = copy.deepcopy(random.choice(_ODD))
        if not isinstance(found["spec"], dict) or not list(_places(found["spec"])):
            break
    if random.random() < 0.1:
        found["spec"]["exempt"] = random.choice(({}, {"lendablePercent": 101}, {"nominalConcurrencyShares": -1}))
    return found


def _places(value: Any) -> Any:
    """Every member of a value, with what holds it."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(items):
        yield value, key
        yield from _places(item)

"""One case: what may be configured, or a configuration and requests under it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any, Final

from tools.differential.case import NAME, NAMESPACE, Case, Step

from .configuration import LEVELS, SCHEMAS, USERS, Body, flow_schema, priority_level, spoiled
from .questions import question, status_alone, uids_alone
from .series import METRICS, estimates_alone, limits_alone, limits_of_others

_SEEN: Final = 0.25
"""Seconds in which a server finds out about a level that has changed."""
_FIXED: Final = (
    f"{SCHEMAS}/exempt",
    f"{SCHEMAS}/catch-all",
    f"{SCHEMAS}/global-default",
    f"{SCHEMAS}/probes",
    f"{LEVELS}/exempt",
    f"{LEVELS}/catch-all",
    f"{LEVELS}/workload-low",
    f"{LEVELS}/system",
)
_CONDITIONS: Final = ("Dangling", "Dangling", "Other", "", "x")
_LISTS: Final = (
    "",
    "?limit=1",
    "?limit=3",
    "?limit=30",
    "?limit=500",
    "?resourceVersion=0",
    "?labelSelector=a%3Db",
    "?resourceVersion=0&limit=5",
    "?resourceVersion=1&limit=5",
    "?resourceVersion=1",
    "?limit=-1",
    "?resourceVersion=1&resourceVersionMatch=Exact",
    "?resourceVersionMatch=NotOlderThan",
    "?limit=x",
    "?resourceVersion=1&resourceVersionMatch=NotOlderThan&limit=7",
    "?fieldSelector=metadata.name%3Da",
    "?limit=4&continue=abc",
    "?resourceVersion=1&resourceVersionMatch=Exact&limit=12&labelSelector=a",
    "?fieldSelector=metadata.namespace%3Da&limit=20",
    "?timeoutSeconds=x",
    "?continue=abc",
    "?resourceVersion=x",
    "?resourceVersionMatch=Nonsense",
    "?limit=0",
    "?limit=9999999999999999999",
    "?resourceVersion=1&resourceVersionMatch=Exact&fieldSelector=metadata.name%3Da",
    "?resourceVersion=1&limit=15&labelSelector=a%3Db",
)
_WATCHES: Final = (
    "&resourceVersion=0",
    "",
    "&resourceVersion=1",
    "&sendInitialEvents=true",
    "&sendInitialEvents=false",
    "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
    "&resourceVersion=5&sendInitialEvents=1",
    "&fieldSelector=metadata.name%3Da",
    "&resourceVersion=&limit=3",
    "&sendInitialEvents=x",
)


def cases(random: Random) -> Case:
    """Configurations that count, and what follows of them: one case at a time."""
    return _of_flows(random) if random.random() < 0.7 else _of_estimates(random)


def validation(random: Random) -> Case:
    """Objects that may be invalid are created and updated, which changes nothing."""
    steps = []
    for _ in range(random.randint(4, 8)):
        what = random.random()
        if what < 0.4:
            steps.append(
                Step("POST", f"{SCHEMAS}?dryRun=All", _perhaps_spoiled(random, flow_schema(random, 0, _there())))
            )
        elif what < 0.75:
            steps.append(Step("POST", f"{LEVELS}?dryRun=All", _perhaps_spoiled(random, priority_level(random, 0))))
        elif what < 0.9:
            steps.append(_fixed(random))
        else:
            steps.append(_conditions(random))
    return Case("what may be configured", steps)


def _there() -> tuple[str, ...]:
    return "global-default", "catch-all", "exempt", "nowhere"


def _perhaps_spoiled(random: Random, body: Body) -> Body:
    return spoiled(random, body) if random.random() < 0.85 else body


def _fixed(random: Random) -> Step:
    """One of those that are always there is changed, or deleted."""
    path = random.choice(_FIXED)
    if random.random() < 0.15:
        return Step("DELETE", f"{path}?dryRun=All", seen=status_alone)
    other = flow_schema(random, 0, _there()) if path.startswith(SCHEMAS) else priority_level(random, 0)
    body: dict[str, Any] = {"spec": _perhaps_spoiled(random, other)["spec"]}
    if random.random() < 0.5:
        body = {
            "spec": {
                "limited": body["spec"].get("limited"),
                "exempt": random.choice((None, {}, {"lendablePercent": 50}, {"nominalConcurrencyShares": 3})),
            }
        }
    return Step("PATCH", f"{path}?dryRun=All", body, "application/merge-patch+json", seen=status_alone)


def _conditions(random: Random) -> Step:
    kinds = [random.choice(_CONDITIONS) for _ in range(random.randint(1, 3))]
    status = {"conditions": [{"type": kind, "status": random.choice(("True", "False", "x", ""))} for kind in kinds]}
    path = random.choice(_FIXED)
    return Step(
        "PATCH", f"{path}/status?dryRun=All", {"status": status}, "application/merge-patch+json", seen=status_alone
    )


def _of_flows(random: Random) -> Case:
    """Levels and schemas are made and changed, and after each change requests are asked whose turn they are."""
    count = random.choice((1, 1, 2, 3))
    levels = [Step("POST", LEVELS, priority_level(random, number)) for number in range(count)]
    names = (*(step.body["metadata"]["name"] for step in levels), "global-default", "workload-low", f"{NAME}-nowhere")
    schemas = [Step("POST", SCHEMAS, flow_schema(random, number, names)) for number in range(random.randint(1, 4))]
    made = [*levels, *schemas]
    random.shuffle(made)
    steps = [*made, *_settled(schemas, {f"{NAME}-nowhere"}), *_uids(), Step("GET", METRICS, seen=limits_alone)]
    steps += [question(random) for _ in range(random.randint(10, 25))]
    if random.random() < 0.6:
        gone = {f"{NAME}-nowhere"}
        steps += _change(random, levels, schemas, gone, names)
        limits = limits_alone if len(gone) == 1 else limits_of_others
        steps += [*_settled(schemas, gone), *_uids(), Step("GET", METRICS, seen=limits)]
        steps += [question(random) for _ in range(random.randint(5, 15))]
    cleanup = [Step("DELETE", f"{step.path}/{step.body['metadata']['name']}") for step in reversed(made)]
    return Case("whose turn it is", steps, cleanup=cleanup, is_slow=True)


def _change(
    random: Random, levels: list[Step], schemas: list[Step], gone: set[str], names: tuple[str, ...]
) -> list[Step]:
    """A level goes or changes, or a schema does; `schemas` and `gone` are what there is afterwards."""
    what = random.random()
    level = random.choice(levels)
    name = level.body["metadata"]["name"]
    if what < 0.35:
        gone.add(name)
        return [Step("DELETE", f"{LEVELS}/{name}", pause=_SEEN, seen=status_alone)]
    if what < 0.6:
        spec = priority_level(random, 9)["spec"]
        return [
            Step(
                "PATCH",
                f"{LEVELS}/{name}",
                {"spec": spec},
                "application/merge-patch+json",
                pause=_SEEN,
                seen=status_alone,
            )
        ]
    index = random.randrange(len(schemas))
    old = schemas[index].body["metadata"]["name"]
    body = flow_schema(random, 0, names)
    body["metadata"]["name"] = old
    schemas[index] = replace(schemas[index], body=body)
    return [
        Step(
            "PUT",
            f"{SCHEMAS}/{old}",
            edit=_with_spec(body["spec"]),
            about=json.dumps(body["spec"]),
            attempts=5,
            pause=_SEEN,
            seen=status_alone,
        )
    ]


def _with_spec(spec: Body) -> Callable[[Body], Body]:
    return lambda found: {**found, "spec": spec}


def _settled(schemas: list[Step], gone: set[str]) -> list[Step]:
    """Waits until every schema says of its level what is so."""
    steps = []
    for step in schemas:
        is_gone = step.body["spec"]["priorityLevelConfiguration"]["name"] in gone
        path = f"{SCHEMAS}/{step.body['metadata']['name']}"
        steps.append(Step("GET", path, until=_says("True" if is_gone else "False"), seen=status_alone))
    return [*steps[:-1], replace(steps[-1], pause=_SEEN)]


def _says(status: str) -> Callable[[Any], bool]:
    def is_so(found: Any) -> bool:
        conditions = found.get("status", {}).get("conditions") if isinstance(found, dict) else None
        return conditions is not None and bool(conditions) and conditions[0]["status"] == status

    return is_so


def _uids() -> list[Step]:
    return [Step("GET", path, seen=uids_alone) for path in (SCHEMAS, LEVELS)]


def _of_estimates(random: Random) -> Case:
    """Lists, watches and writes of which it is asked how many seats they were taken to need."""
    level = priority_level(random, 0)
    limited = level["spec"]["limited"]
    limited["nominalConcurrencyShares"] = random.choice((1, 10, 50, 100, 300))
    schema = flow_schema(random, 0, (level["metadata"]["name"],))
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
    subjects = [{"kind": "User", "user": {"name": user}} for user in USERS]
    schema["spec"] |= {"matchingPrecedence": 2, "rules": [{"subjects": subjects, "resourceRules": [everything]}]}
    made = [Step("POST", LEVELS, level), Step("POST", SCHEMAS, schema)]
    steps = [*made, *_settled(made[1:], set())]
    for _ in range(random.randint(4, 9)):
        steps += [_sized(random), Step("GET", METRICS, seen=estimates_alone)]
    cleanup = [Step("DELETE", f"{step.path}/{step.body['metadata']['name']}") for step in reversed(made)]
    return Case("how many seats it takes", steps, cleanup=cleanup, is_slow=True)


def _sized(random: Random) -> Step:
    fields: dict[str, str | tuple[str, ...] | None] = {"Impersonate-User": USERS[0]}
    code = lambda answer: replace(answer, body=None, warnings=())  # noqa: E731
    what = random.random()
    if what < 0.5:
        own = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
        other = ("/api/v1/configmaps", "/api/v1/limitranges", "/apis/nope.example.com/v1/things")
        base = random.choice((own, own, *other))
        return Step("GET", base + random.choice(_LISTS), fields=fields, seen=code)
    if what < 0.7:
        path = f"/api/v1/namespaces/{NAMESPACE}/configmaps?watch=1{random.choice(_WATCHES)}"
        return Step("GET", path, fields=fields, seen=code)
    place = random.choice((NAMESPACE, "few-watches", "many-watches", "many-watches"))
    path = f"/api/v1/namespaces/{place}/configmaps"
    method = random.choice(("POST", "PUT", "PATCH", "DELETE", "DELETE"))
    if method != "POST" and random.random() < 0.8:
        path += f"/{random.choice(('a', 'watched'))}"
    if method in ("POST", "PATCH") and random.random() < 0.2:
        path = f"/api/v1/namespaces/{place}/serviceaccounts/a/token"
    media = "application/merge-patch+json" if method == "PATCH" else "application/json"
    return Step(method, path, None if method == "DELETE" else {}, media, fields=fields, seen=code)

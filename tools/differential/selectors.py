"""Lists by label and field selectors, of a few objects of the case's own; selectors that are none among them."""

from __future__ import annotations

import urllib.parse
from random import Random
from typing import Final

from .case import NAME, NAMESPACE, Case, Step
from .kinds import few, pairs

_PATH: Final = f"/api/v1/namespaces/{NAMESPACE}"
_VALUES: Final = ("1", "2", "3", "", "x/y", "-", "a_b", "a" * 64)
_KEYS: Final = ("a", "b", "c", "example.com/a", "A.b", "", "a b", "/a", "a/b/c", "!a", "case")
_TAKEN: Final = {
    "configmaps": ("metadata.name", "metadata.namespace"),
    "pods": (
        "metadata.name",
        "status.phase",
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.hostNetwork",
        "status.podIP",
    ),
    "secrets": ("metadata.name", "type"),
}
_OTHERS: Final = ("spec.unknown", "data", "", "metadata.uid", "status.phase", "type")
_TEXTS: Final = (",", "=", "!", "(", ")", " ", "in", "notin", "a", "b", "1", "==", "!=", ">", "<", "\\", "é", "\n", "%")


def cases(random: Random) -> Case:
    """A few objects, and lists of them."""
    plural = random.choice(["configmaps", "configmaps", "pods", "secrets"])
    steps = [Step("POST", f"{_PATH}/{plural}", _body(random, plural, number)) for number in range(random.randint(1, 4))]
    for _ in range(random.randint(2, 6)):
        steps.append(_list(random, plural))
    if random.random() < 0.3:
        selector = urllib.parse.quote(f"case={NAME},{_requirement(random)}", safe="@")
        steps.append(Step("DELETE", f"{_PATH}/{plural}?labelSelector={selector}"))
        steps.append(Step("GET", f"{_PATH}/{plural}?labelSelector=case={NAME}"))
    return Case(f"selectors of {plural}", steps)


def _body(random: Random, plural: str, number: int) -> dict[str, object]:
    labels = {"case": NAME, **pairs(random), **({"example.com/a": "1"} if random.random() < 0.3 else {})}
    body: dict[str, object] = {"metadata": {"name": f"{NAME}-{number}", "labels": labels}}
    if plural == "pods":
        spec = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": random.choice(["Always", "Never"])}
        body["spec"] = {**spec, **({"nodeName": "n"} if random.random() < 0.3 else {})}
    elif plural == "secrets":
        body["type"] = random.choice(["Opaque", "example.com/t"])
    return body


def _list(random: Random, plural: str) -> Step:
    if random.random() < 0.15:
        text = "".join(random.choice(_TEXTS) for _ in range(random.randint(1, 8)))
        selector = urllib.parse.urlencode({random.choice(["labelSelector", "fieldSelector"]): text})
        return Step("GET", f"{_PATH}-empty/{plural}?{selector}")  # what may select all looks where there is nothing
    query: dict[str, str] = {}
    if random.random() < 0.8:
        query["labelSelector"] = _labels(random)
    if random.random() < 0.4:
        query["fieldSelector"] = _fields(random, plural)
    if "labelSelector" not in query and "fieldSelector" not in query:
        query["labelSelector"] = f"case={NAME}"
    if random.random() < 0.2:
        query["limit"] = random.choice(["1", "2", "0", "-1", "x", "100"])
    return Step("GET", f"{_PATH}/{plural}?{urllib.parse.urlencode(query, safe='@', quote_via=urllib.parse.quote)}")


def _labels(random: Random) -> str:
    requirements = [f"case={NAME}", *(_requirement(random) for _ in range(random.randint(0, 3)))]
    random.shuffle(requirements)
    return random.choice([",", ",", ", ", " ,"]).join(requirements)


def _requirement(random: Random) -> str:
    key = random.choice(_KEYS[:5]) if random.random() < 0.85 else random.choice(_KEYS)
    value = random.choice(_VALUES[:4]) if random.random() < 0.85 else random.choice(_VALUES)
    many = ",".join(few(random, list(_VALUES[:4]))) if random.random() < 0.9 else value
    return random.choice(
        [
            f"{key}={value}",
            f"{key}=={value}",
            f"{key}!={value}",
            key,
            f"!{key}",
            f"{key} in ({many})",
            f"{key} notin ({many})",
            f"{key}>{value}",
            f"{key} < {value}",
            f"{key} in {value}",
            f"{key} = {value}",
        ]
    )


def _fields(random: Random, plural: str) -> str:
    terms = []
    for _ in range(random.randint(1, 2)):
        name = random.choice(_TAKEN[plural] if random.random() < 0.85 else _OTHERS)
        value = random.choice(
            [
                f"{NAME}-0",
                f"{NAME}-1",
                NAMESPACE,
                "Pending",
                "Running",
                "n",
                "",
                "Always",
                "Opaque",
                "false",
                "a\\,b",
                "a\\b",
                "a=b",
            ]
        )
        terms.append(f"{name}{random.choice(['=', '==', '!=', ''])}{value}")
    return ",".join(terms)

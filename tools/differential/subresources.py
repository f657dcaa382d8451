"""Requests to subresources: scale, bind, evict, resize, debug, approve, finalize.

Each request may well be accepted, and has up to two random changes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import lru_cache
from random import Random
from typing import Any, Final

from steersman.api.autoscaling.v1 import Scale
from steersman.api.core.v1 import Binding
from steersman.api.policy.v1 import Eviction
from steersman.machinery.codec.go_types import struct_of

from .case import NAME, NAMESPACE, Case, Step
from .objects import Sample, change, samples

_MERGE: Final = "application/merge-patch+json"
_COUNT: Final = (0, 0, 1, 1, 2)

Body = dict[str, Any]


@lru_cache(maxsize=1)
def _scaled() -> tuple[Sample, ...]:
    """The samples of what can be scaled."""
    return tuple(each for each in samples() if any(sub.name == "scale" for sub in each.resource.subresources))


@lru_cache(maxsize=8)
def _of_kind(kind: str) -> tuple[Sample, ...]:
    return tuple(each for each in samples() if each.body["kind"] == kind)


def cases(random: Random) -> Case:
    """An object is created, something is done to it some times, and it is read again."""
    kind, makers = random.choice(_ACTIONS)
    sample = random.choice(_scaled() if kind == "scale" else _of_kind(kind))
    body = copy.deepcopy(sample.body)
    body.pop("status", None)
    steps = [Step("POST", sample.collection, body)]
    steps += [random.choice(makers)(random, sample) for _ in range(random.choice((1, 2, 3)))]
    gone = Step("DELETE", f"{sample.path}?gracePeriodSeconds=0")
    return Case(f"subresources of {sample.body['kind']}", [*steps, Step("GET", sample.path)], cleanup=[gone])


def _scale(random: Random, sample: Sample) -> Step:
    seed = random.random()
    path = f"{sample.path}/scale"
    if random.random() < 0.4:
        return Step("PATCH", path, {"spec": {"replicas": random.choice((0, 1, 5, -1, "a", None))}}, _MERGE)

    def edit(found: Body) -> Body:
        again = Random(seed)
        if "spec" in found:
            found["spec"]["replicas"] = again.choice((0, 1, 3, 7))
            change(again, found, struct_of(Scale), again.choice(_COUNT))
        return found

    return Step("PUT", path, edit=edit, about="a scale with some changes")


def _bind(random: Random, sample: Sample) -> Step:
    name = random.choice((NAME, NAME, NAME, "other"))
    target = {"kind": "Node", "name": random.choice(("n1", "n2"))}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    change(random, body, struct_of(Binding), random.choice(_COUNT))
    if random.random() < 0.5:
        return Step("POST", f"{sample.path}/binding", body)
    return Step("POST", f"/api/v1/namespaces/{NAMESPACE}/bindings", body)


def _evict(random: Random, sample: Sample) -> Step:
    options = {"gracePeriodSeconds": random.choice((0, 5)), "dryRun": random.choice(([], ["All"]))}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": NAME}, "deleteOptions": options}
    change(random, body, struct_of(Eviction), random.choice(_COUNT))
    return Step("POST", f"{sample.path}/eviction", body)


def _edited(subresource: str, below: tuple[str, ...], prepare: Callable[[Random, Body], None]) -> Any:
    """Makes steps that read a subresource and write it back, changed."""

    def make(random: Random, sample: Sample) -> Step:
        seed = random.random()

        def edit(found: Body) -> Body:
            again = Random(seed)
            if "metadata" in found and found.get("kind") != "Status":
                found["metadata"].pop("managedFields", None)
                prepare(again, found)
                change(again, found, sample.type, again.choice(_COUNT), below=below)
            return found

        return Step("PUT", f"{sample.path}/{subresource}", edit=edit, about="some changes")

    return make


def _debug(random: Random, pod: Body) -> None:
    containers = pod["spec"].setdefault("ephemeralContainers", [])
    name = random.choice(("debug", "debug", "other", pod["spec"]["containers"][0]["name"]))
    containers.append({"name": name, "image": "busybox", "targetContainerName": pod["spec"]["containers"][0]["name"]})


def _resize(random: Random, pod: Body) -> None:
    for container in pod["spec"]["containers"]:
        resources = container.setdefault("resources", {})
        for kind in ("requests", "limits"):
            if kind in resources and "cpu" in resources[kind] and random.random() < 0.7:
                resources[kind]["cpu"] = random.choice(("50m", "200m", "2", "0"))


def _approve(random: Random, request: Body) -> None:
    kind = random.choice(("Approved", "Denied", "Failed", "Other"))
    condition = {"type": kind, "status": random.choice(("True", "True", "False")), "reason": "Test"}
    request.setdefault("status", {}).setdefault("conditions", []).append(condition)


def _finalize(random: Random, namespace: Body) -> None:
    namespace["spec"] = {"finalizers": random.choice((["kubernetes"], ["kubernetes", "example.com/a"], ["a b"]))}


_ACTIONS: Final = (
    ("scale", (_scale,)),
    ("Pod", (_bind, _evict)),
    ("Pod", (_edited("ephemeralcontainers", ("spec",), _debug),)),
    ("Pod", (_edited("resize", ("spec",), _resize),)),
    (
        "CertificateSigningRequest",
        (_edited("approval", ("status",), _approve), _edited("status", ("status",), _approve)),
    ),
    ("Namespace", (_edited("finalize", ("spec",), _finalize),)),
)

"""Objects of every kind that is stored, with a few things changed: created, updated, their status written.

The samples can be created as they are. What is changed is chosen along the Go types: a field taken out, set to what it
should not be, or added; an item of a list twice, or none. Values come from what the samples have under the same name,
and from what is wrong in most places. Nothing is made empty: upstream tells an empty list from none at all in its
messages, which is a known difference.

The versions that only --runtime-config turns on have cases of their own, in which every step may take another version.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any, Final

from steersman.api.index import ON_REQUEST
from steersman.controlplane import on_request
from steersman.controlplane.resources import AGGREGATOR, API_EXTENSIONS
from steersman.machinery.codec.go_types import GoMember, GoType, members_of
from steersman.machinery.codec.yaml import load
from steersman.rest.resource import Resource

from .case import NAMESPACE, Case, Step

SAMPLES: Final = Path(__file__).with_name("samples.yaml")

_DEPTH: Final = 4
"""Levels of a value made for a field that was not set."""
_TEXTS: Final = (
    "",
    "a",
    "A_b",
    "x" * 64,
    "x" * 300,
    "-a",
    "a.b",
    "a/b",
    "example.com/a",
    "a b",
    "é",
    "0",
    "1",
    "-1",
    "50%",
    "150%",
    "192.0.2.1",
    "192.0.2.0/24",
    "010.0.0.1",
    "::1",
    "http",
    "TCP",
    "*",
    "/",
    "/a/../b",
    "a:b",
    "true",
    "None",
    "None ",
    "Always",
    "Never",
    "In",
    "Exists",
    "kubernetes.io/x",
    "$(A)",
    "{}",
    "1Gi",
)
_NUMBERS: Final = (0, 1, 2, -1, 3, 5, 10, 30, 60, 100, 101, 255, 300, 1000, 65535, 65536, 2**31 - 1, -5)
_QUANTITIES: Final = ("0", "1", "100m", "1Gi", "-1", "1.5", "0.5m", "1e3", "2Gi", 2)
_TIMES: Final = ("2026-01-01T00:00:00Z", "2020-02-03T04:05:06Z")
_INT_OR_STRING: Final = (0, 1, 80, -1, 70000, "http", "50%", "150%", "a b", "", "0%", "1")
_BYTES: Final = ("AAEC", base64.b64encode(b"x" * 50).decode())
_NAMES: Final = ("a", "A b", "example.com/a", "-x", "x" * 70, "cpu", "memory", "kubernetes.io/x", "requests.cpu")


@dataclass(frozen=True)
class Sample:
    """An object that can be created, and what serves it."""

    body: dict[str, Any]
    resource: Resource[Any]
    api_version: str
    type: GoType
    has_status: bool

    @property
    def collection(self) -> str:
        return self.collection_in(self.api_version)

    @property
    def path(self) -> str:
        return self.path_in(self.api_version)

    @property
    def on_request(self) -> bool:
        """Return True if its version is off by default."""
        return tuple(self.api_version.split("/")) in ON_REQUEST

    @property
    def versions(self) -> list[str]:
        """Every API version of its group that it can be asked for in."""
        resource = self.resource
        group = self.api_version.rpartition("/")[0]
        found = [(resource.group, resource.version), *((each.group, each.version) for each in resource.other_versions)]
        return [f"{group}/{version}" if group else version for each, version in found if each == group]

    def collection_in(self, api_version: str) -> str:
        """The path of its collection in a version."""
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        return (
            f"{root}/namespaces/{NAMESPACE}/{self.resource.plural}"
            if self.resource.namespaced
            else (f"{root}/{self.resource.plural}")
        )

    def path_in(self, api_version: str) -> str:
        """Its path in a version."""
        return f"{self.collection_in(api_version)}/{self.body['metadata']['name']}"


def samples() -> tuple[Sample, ...]:
    """The samples of the versions that are served by default."""
    return tuple(each for each in every_sample() if not each.on_request)


def samples_on_request() -> tuple[Sample, ...]:
    """Return the samples of versions that are off by default."""
    return tuple(each for each in every_sample() if each.on_request)


@lru_cache(maxsize=1)
def every_sample() -> tuple[Sample, ...]:
    """Every sample of the file. Raises KeyError for a kind that is not there."""
    served = {}
    for resource in (*on_request.kube_api(lambda *_: True), *AGGREGATOR, *API_EXTENSIONS):
        group = f"{resource.group}/" if resource.group else ""
        served[f"{group}{resource.version}", resource.kind.name] = resource, resource.kind
        for other in resource.other_versions:
            served[f"{other.group}/{other.version}", other.kind.name] = resource, other.kind
    found = []
    for text in SAMPLES.read_bytes().split(b"\n---\n"):
        body, _ = load(text)
        resource, kind = served[body["apiVersion"], body["kind"]]
        has_status = any(each.name == "status" for each in resource.subresources)
        assert kind.go_type is not None, kind.name
        found.append(Sample(body, resource, body["apiVersion"], kind.go_type, has_status))
    return tuple(found)


@lru_cache(maxsize=1)
def _seen() -> dict[str, list[Any]]:
    """The scalars that samples have under each name."""
    seen: dict[str, list[Any]] = {}
    for sample in every_sample():
        for container, key, _ in _places(sample.body, sample.type):
            value = container[key]
            for each in value if isinstance(value, list) else (value,):
                if not isinstance(each, dict | list) and each not in seen.setdefault(str(key), []):
                    seen[str(key)].append(each)
    return seen


def cases(random: Random) -> Case:
    """An object is created, updated and its status written, each with up to three changes."""
    sample = random.choice(samples())
    body = copy.deepcopy(sample.body)
    status = body.pop("status", None)
    change(random, body, sample.type, random.choice((0, 0, 1, 1, 2, 3)))
    if "flowcontrol" in sample.api_version:
        # a controller within upstream's server writes to these too, at times of its own
        return Case(_title(sample), [Step("POST", f"{sample.collection}?dryRun=All", body)])
    steps = [Step("POST", sample.collection, body), Step("PUT", sample.path, edit=_edit(random), about="some changes")]
    if random.random() < 0.5:
        steps.append(Step("PUT", sample.path, edit=_edit(random), about="some changes"))
    if sample.has_status:
        about = "a changed status"
        steps.append(Step("PUT", f"{sample.path}/status", edit=_edit(random, status or {}), about=about))
    steps.append(Step("GET", sample.path))
    gone = Step("DELETE", f"{sample.path}?gracePeriodSeconds=0")
    unprotected = Step("PATCH", sample.path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
    return Case(_title(sample), [*steps, gone], cleanup=[unprotected, gone])


def cases_on_request(random: Random) -> Case:
    """Return a case of versions that are off by default: writes, applies, and reads in every version."""
    sample = random.choice(samples_on_request())

    def path() -> str:
        return sample.path_in(random.choice(sample.versions))

    body = copy.deepcopy(sample.body)
    status = body.pop("status", None)
    change(random, body, sample.type, random.choice((0, 0, 1, 1, 2, 3)))
    steps = [Step("POST", sample.collection, body)]
    for _ in range(random.choice((1, 2, 3))):
        if random.random() < 0.6:
            steps.append(Step("PUT", path(), edit=_edit(random), about="some changes"))
        else:
            steps.append(_applied(random, sample))
    if sample.has_status:
        about = "a changed status"
        steps.append(Step("PUT", f"{sample.path}/status", edit=_edit(random, status or {}), about=about))
    steps += [Step("GET", sample.path_in(version)) for version in sample.versions]
    gone = Step("DELETE", f"{path()}?gracePeriodSeconds=0")
    unprotected = Step("PATCH", sample.path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
    return Case(_title(sample), [*steps, gone], cleanup=[unprotected, gone])


def _applied(random: Random, sample: Sample) -> Step:
    """An apply by one of two managers of a sample of the same resource, of any version."""
    configuration = random.choice([each for each in every_sample() if each.resource.plural == sample.resource.plural])
    body = copy.deepcopy(configuration.body)
    body.pop("status", None)
    body["metadata"]["name"] = sample.body["metadata"]["name"]
    change(random, body, configuration.type, random.choice((0, 0, 1)))
    path = sample.path_in(configuration.api_version)
    query = f"fieldManager={random.choice('mn')}&force={random.choice(('true', 'false'))}"
    return Step("PATCH", f"{path}?{query}", body, "application/apply-patch+yaml")


def _title(sample: Sample) -> str:
    return f"objects of {sample.api_version} {sample.body['kind']}"


def _edit(random: Random, status: dict[str, Any] | None = None) -> Any:
    """Changes what a server has; the same for each server, as long as they have the same."""
    seed = random.random()

    def edit(found: dict[str, Any]) -> dict[str, Any]:
        again = Random(seed)
        if "metadata" not in found or found.get("kind") == "Status":
            return found
        kind = found["apiVersion"], found["kind"]
        type_ = next(each.type for each in every_sample() if (each.api_version, each.body["kind"]) == kind)
        found["metadata"].pop("managedFields", None)
        if status is None:
            change(again, found, type_, again.choice((1, 1, 2, 3)), below=("spec", "metadata", ""))
        else:
            found["status"] = {**(found.get("status") or {}), **copy.deepcopy(status)}
            change(again, found, type_, again.choice((0, 1, 1, 2)), below=("status",))
        return found

    return edit


Place = tuple[Any, Any, GoType]


def _places(value: Any, type_: GoType) -> Iterator[Place]:
    """Everything in a value that has a type: the dict or list it is in, its name or index there, the type."""
    if type_.kind == "struct" and isinstance(value, dict):
        members = members_of(type_)
        for name in value:
            if name in members:
                yield value, name, members[name].type
                yield from _places(value[name], members[name].type)
    elif type_.kind == "list" and isinstance(value, list) and type_.element is not None:
        for index in range(len(value)):
            yield value, index, type_.element
            yield from _places(value[index], type_.element)
    elif type_.kind == "map" and isinstance(value, dict) and type_.element is not None:
        for name in value:
            yield value, name, type_.element
            yield from _places(value[name], type_.element)


def change(random: Random, body: Any, type_: GoType, count: int, below: tuple[str, ...] = ()) -> None:
    """Changes `count` things, where `below` is given only there ("" is what is beside spec and metadata)."""
    for _ in range(count):
        places = list(_candidates(random, body, type_, below))
        if places:
            _change_one(random, *random.choice(places))


def _candidates(random: Random, body: dict[str, Any], type_: GoType, below: tuple[str, ...]) -> Iterator[Place]:
    members = members_of(type_)
    for name in list(body):
        if name in ("kind", "apiVersion") or name not in members or (name == "status" and "status" not in below):
            continue
        if below and name not in below and ("" not in below or name in ("spec", "metadata", "status")):
            continue
        if name == "metadata" and random.random() < 0.85:
            continue
        if name != "metadata":
            yield body, name, members[name].type
        for container, key, place in _places(body[name], members[name].type):
            if name == "metadata" and container is body[name] and key not in _METADATA:
                continue
            yield container, key, place


_METADATA: Final = ("labels", "annotations", "finalizers", "ownerReferences", "generateName", "deletionTimestamp")


def _change_one(random: Random, container: Any, key: Any, type_: GoType) -> None:
    value = container[key]
    if isinstance(value, dict) and type_.kind == "struct" and random.random() < 0.6:
        absent = [(name, member) for name, member in members_of(type_).items() if name not in value]
        if absent:
            name, member = random.choice(absent)
            value[name] = _made(random, member.type, name, 1)
            return
    if isinstance(value, list) and value and random.random() < 0.5:
        what = random.randrange(3)
        if what == 0:
            value.append(copy.deepcopy(value[-1]))
        elif what == 1:
            value.pop()
        elif type_.element is not None:
            value.append(_made(random, type_.element, str(key), 1))
        return
    if isinstance(value, dict) and type_.kind == "map" and type_.element is not None and random.random() < 0.5:
        value[random.choice(_NAMES)] = _made(random, type_.element, str(key), 1)
        return
    if isinstance(container, dict) and random.random() < 0.35:
        del container[key]
        return
    container[key] = _made(random, type_, str(key), 1)


def _made(random: Random, type_: GoType, name: str, depth: int) -> Any:
    """A value of a type for a field of that name."""
    kind = type_.kind
    if kind == "struct":
        return _made_struct(random, type_, depth)
    if kind == "list" and type_.element is not None:
        return [_made(random, type_.element, name, depth) for _ in range(random.choice((1, 1, 1, 2)))]
    if kind == "map" and type_.element is not None:
        keys = random.sample(_NAMES, random.choice((1, 2)))
        return {key: _made(random, type_.element, name, depth) for key in keys}
    if kind == "string":
        known = [each for each in _seen().get(name, ()) if isinstance(each, str)]
        return random.choice(known) if known and random.random() < 0.6 else random.choice(_TEXTS)
    if kind in ("int32", "int64", "uint8"):
        return random.choice(_NUMBERS)
    if kind == "bool":
        return random.random() < 0.5
    if kind == "bytes":
        return random.choice(_BYTES)
    if kind == "float64":
        return random.choice((0, 1, 0.5, -1))
    if kind == "own":
        return _made_own(random, type_.name)
    return random.choice(("a", 1, {"a": 1}))


def _made_struct(random: Random, type_: GoType, depth: int) -> dict[str, Any]:
    members: dict[str, GoMember] = members_of(type_)
    if depth > _DEPTH or not members:
        return {}
    count = random.choice((0, 1, 2, 2, 3, 4))
    chosen = random.sample(sorted(members), min(count, len(members)))
    # what names an item or says which of several it is helps to get past the first error
    chosen += [name for name in ("name", "key", "type", "operator") if name in members and random.random() < 0.7]
    return {name: _made(random, members[name].type, name, depth + 1) for name in dict.fromkeys(chosen)}


def _made_own(random: Random, name: str) -> Any:
    if name == "api.resource.Quantity":
        return random.choice(_QUANTITIES)
    if name in ("meta.v1.Time", "meta.v1.MicroTime"):
        return random.choice(_TIMES) if name == "meta.v1.Time" else random.choice(_TIMES)[:-1] + ".000000Z"
    if name == "util.intstr.IntOrString":
        return random.choice(_INT_OR_STRING)
    if name == "meta.v1.Duration":
        return random.choice(("1s", "0s", "-1m"))
    return random.choice(({"a": 1}, {}))

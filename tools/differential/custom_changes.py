"""Definitions that change while objects of them are there: schemas, versions, names, subresources, and their end.

Each case has definitions of its own, and both servers are given time to find out about each change. Upstream takes
seconds to serve and to delete a definition, so several cases are best played at the same time (`--jobs`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import Any, Final

from .case import NAME, NAMESPACE, Case, Step
from .custom import Cases
from .custom_definitions import COLLECTION, FULL_NAME, Defined, served
from .subresources import Body

_SEEN: Final = 0.6
"""Seconds in which both servers find out about a change."""
_MERGE: Final = "application/merge-patch+json"
_TABLE: Final = "application/json;as=Table;g=meta.k8s.io;v=v1"
_RIVAL: Final = f"rivals.{NAME}.example.com"


def cases(random: Random) -> Case:
    """A definition, some objects, some changes, and the end of both."""
    return _Changes(random).case()


class _Changes:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.definition = served(random, NAME)
        self.definition.body["metadata"]["name"] = FULL_NAME
        self.names = [f"{NAME}-{number}" for number in range(2)]

    def case(self) -> Case:
        random, path = self.random, self.definition.path
        steps = [Step("POST", COLLECTION, self.definition.body), self._settled(_is_judged), *self._discovery()]
        steps += [self._objects(name)._create() for name in self.names]
        for _ in range(random.choice((1, 2, 3))):
            steps += self._changed()
            steps += [random.choice((self._written, self._read, self._listed))() for _ in range(3)]
        if len(self.definition.body["spec"]["versions"]) > 1 and random.random() < 0.4:
            steps += self._migrated()
        if random.random() < 0.4:
            steps += self._rival()
        if random.random() < 0.5:
            steps += self._ended()
        freed = {"metadata": {"finalizers": None}}
        cleanup = [
            Step("PATCH", f"{self._collection(version['name'])}/{name}", freed, _MERGE)
            for version in self.definition.body["spec"]["versions"]
            for name in self.names
        ]
        cleanup += [Step("DELETE", path), Step("DELETE", f"{COLLECTION}/{_RIVAL}")]
        return Case("a definition that changes", steps, cleanup, is_slow=True)

    def _objects(self, name: str) -> Cases:
        return Cases(self.random, self.definition, name)

    def _collection(self, version: str) -> str:
        return self.definition.collection(version, NAMESPACE)

    def _any(self) -> str:
        version: str = self.random.choice(self.definition.body["spec"]["versions"])["name"]
        return version

    # Definitions

    def _settled(self, until: Callable[[Any], bool]) -> Step:
        return Step("GET", self.definition.path, until=until, pause=_SEEN, conditions=True)

    def _discovery(self) -> list[Step]:
        group = f"/apis/{NAME}.example.com"
        return [
            Step("GET", group),
            *(Step("GET", f"{group}/{version['name']}") for version in self.definition.body["spec"]["versions"]),
        ]

    def _changed(self) -> list[Step]:
        seed = self.random.random()
        change = self.random.choice(_CHANGES)

        def edit(found: Any) -> Any:
            if isinstance(found, dict) and "spec" in found:
                found.pop("status", None)
                change(Random(seed), found["spec"])
            return found

        about = f"{change.__name__.strip('_')}, seed {seed}"
        put = Step("PUT", self.definition.path, edit=edit, about=about, attempts=10, pause=_SEEN)
        return [put, Step("GET", self.definition.path, conditions=True), *self._discovery()]

    def _migrated(self) -> list[Step]:
        """Everything is stored in one version, and there is no other any more, though owners have written in it."""
        kept = self.definition.body["spec"]["versions"][0]

        def stored(found: Any) -> Any:
            for each in found.get("spec", {}).get("versions", ()):
                each["storage"] = each["name"] == kept["name"]
                each["served"] = True
            return found

        def alone(found: Any) -> Any:
            if "spec" in found:
                found["spec"]["versions"] = [each for each in found["spec"]["versions"] if each["name"] == kept["name"]]
            return found

        path, collection = self.definition.path, self._collection(kept["name"])
        label = {"metadata": {"labels": {"migrated": "yes"}}}
        steps = [Step("PUT", path, edit=stored, about=f"stored as {kept['name']}", attempts=10, pause=_SEEN)]
        steps += [Step("PATCH", f"{collection}/{name}", label, _MERGE) for name in self.names]
        steps.append(Step("PATCH", f"{path}/status", {"status": {"storedVersions": [kept["name"]]}}, _MERGE))
        steps.append(Step("PUT", path, edit=alone, about=f"{kept['name']} alone", attempts=10, pause=_SEEN))
        for _ in range(4):
            objects = self._objects(self.random.choice(self.names))
            objects.version = kept
            steps.append(self.random.choice((objects._apply, objects._apply, objects._merge, objects._status_apply))())
        return [*steps, *(Step("GET", f"{collection}/{name}") for name in self.names)]

    def _rival(self) -> list[Step]:
        """Another definition in the group that wants some of the same names."""
        names: Body = {"plural": "rivals", "kind": "Rival"}
        change: Body = self.random.choice(
            (
                {"kind": "Thing"},
                {"listKind": "ThingList"},
                {"shortNames": ["th", "ri"]},
                {"singular": "things"},
                {"shortNames": ["things"]},
                {"kind": "Thing", "shortNames": ["th"]},
                {"kind": "ThingList"},
            )
        )
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        body = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": _RIVAL},
            "spec": {
                "group": f"{NAME}.example.com",
                "scope": "Cluster",
                "names": names | change,
                "versions": [version],
            },
        }
        path = f"{COLLECTION}/{_RIVAL}"
        steps = [
            Step("POST", COLLECTION, body),
            Step("GET", path, until=_is_judged, pause=_SEEN, conditions=True),
            *self._discovery(),
        ]
        if self.random.random() < 0.5:
            freed = {**names, "listKind": None, "singular": None, "shortNames": None}
            steps.append(Step("PATCH", path, {"spec": {"names": freed}}, _MERGE, pause=_SEEN))
            steps.append(Step("GET", path, pause=_SEEN, conditions=True))
        else:
            steps += [Step("DELETE", self.definition.path, pause=_SEEN), Step("GET", path, pause=2, conditions=True)]
        return steps

    def _ended(self) -> list[Step]:
        """The definition is deleted while an object has a finalizer."""
        version = self.definition.versions[0]["name"]
        path = f"{self._collection(version)}/{self.names[0]}"
        held = {"metadata": {"finalizers": ["example.com/a"]}}
        other = {**self._objects(f"{NAME}-3")._head(), "metadata": {"name": f"{NAME}-3"}}
        return [
            Step("PATCH", path, held, _MERGE, pause=_SEEN),
            Step("DELETE", self.definition.path, pause=_SEEN),
            self._settled(lambda found: "Terminating" in _conditions(found)),
            Step("GET", path),
            Step("POST", self._collection(version), other),
            Step("PATCH", path, {"metadata": {"finalizers": None}}, _MERGE),
            Step("GET", self.definition.path, until=lambda found: found.get("kind") == "Status", pause=_SEEN),
            Step("GET", path),
            *self._discovery(),
        ]

    # Objects

    def _written(self) -> Step:
        objects = self._objects(self.random.choice(self.names))
        objects.version = self.random.choice(self.definition.versions)
        makers = (objects._put, objects._merge, objects._apply, objects._status_put, objects._scale, objects._create)
        return self.random.choice(makers)()

    def _read(self) -> Step:
        below = self.random.choice(("", "", "", "/status", "/scale"))
        accept = self.random.choice(("application/json", "application/json", _TABLE))
        return Step("GET", f"{self._collection(self._any())}/{self.random.choice(self.names)}{below}", accept=accept)

    def _listed(self) -> Step:
        fields = self.random.choice(("", "", "?fieldSelector=spec.color=red", "?labelSelector=a=b"))
        accept = self.random.choice(("application/json", _TABLE, _TABLE))
        return Step("GET", self._collection(self._any()) + fields, accept=accept)


def _conditions(found: Any) -> dict[str, str]:
    status = found.get("status") if isinstance(found, dict) else None
    conditions = (status.get("conditions") if isinstance(status, dict) else None) or []
    return {each["type"]: each["status"] for each in conditions}


def _is_judged(found: Any) -> bool:
    """Return True if a definition is established, or was found not to be."""
    conditions = _conditions(found)
    is_refused = conditions.get("NamesAccepted") == "False" and "Established" in conditions
    return conditions.get("Established") == "True" or is_refused or (isinstance(found, dict) and "code" in found)


# Changes


def _spec_schema(random: Random, spec: Body) -> Body:
    found: Body = random.choice(spec["versions"])["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return found


def _property_gone(random: Random, spec: Body) -> None:
    properties = _spec_schema(random, spec)["properties"]
    names = [name for name in properties if name not in ("replicas", "color")]
    if names:
        del properties[random.choice(names)]


def _property_new(random: Random, spec: Body) -> None:
    fresh = random.choice(
        (
            {"type": "string", "default": "new"},
            {"type": "object", "default": {"a": 1}, "properties": {"a": {"type": "integer"}}},
            {"type": "array", "items": {"type": "string"}},
        )
    )
    _spec_schema(random, spec)["properties"]["fresh"] = fresh


def _stricter(random: Random, spec: Body) -> None:
    schema = _spec_schema(random, spec)
    match random.choice(("replicas", "color", "required", "rule", "type")):
        case "replicas":
            schema["properties"]["replicas"]["maximum"] = 1
        case "color":
            schema["properties"]["color"]["maxLength"] = 1
        case "required":
            schema["required"] = ["color"]
        case "rule":
            schema["x-kubernetes-validations"] = [{"rule": "!has(self.color) || self.color == 'red'"}]
        case "type":
            schema["properties"]["color"] = {"type": "integer"}


def _storage(random: Random, spec: Body) -> None:
    chosen = random.choice(spec["versions"])
    for each in spec["versions"]:
        each["storage"] = each is chosen


def _served(random: Random, spec: Body) -> None:
    chosen = random.choice(spec["versions"])
    chosen["served"] = not chosen["served"]


def _version_new(random: Random, spec: Body) -> None:
    fresh = copy.deepcopy(spec["versions"][0]) | {"name": "v9", "storage": False, "served": True}
    spec["versions"].append(fresh)


def _version_gone(random: Random, spec: Body) -> None:
    spec["versions"].pop()


def _columns(random: Random, spec: Body) -> None:
    column = {"name": "Color", "type": "string", "jsonPath": ".spec.color"}
    random.choice(spec["versions"])["additionalPrinterColumns"] = random.choice(([], [column]))


def _status(random: Random, spec: Body) -> None:
    subresources = random.choice(spec["versions"]).setdefault("subresources", {})
    if "status" in subresources:
        del subresources["status"]
    else:
        subresources["status"] = {}


def _scale(random: Random, spec: Body) -> None:
    subresources = random.choice(spec["versions"]).setdefault("subresources", {})
    if "scale" in subresources:
        del subresources["scale"]
    else:
        subresources["scale"] = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


def _names(random: Random, spec: Body) -> None:
    spec["names"] |= random.choice(
        (
            {"shortNames": ["zz"]},
            {"categories": ["all", "mine"]},
            {"singular": "thingy"},
            {"kind": "Thingy"},
            {"listKind": "Things"},
            {"shortNames": ["things"]},
        )
    )


def _selectable(random: Random, spec: Body) -> None:
    random.choice(spec["versions"])["selectableFields"] = random.choice(([], [{"jsonPath": ".spec.color"}]))


def _deprecated(random: Random, spec: Body) -> None:
    random.choice(spec["versions"]).update(
        random.choice(
            (
                {"deprecated": False, "deprecationWarning": None},
                {"deprecated": True},
                {"deprecated": True, "deprecationWarning": "mind this"},
            )
        )
    )


def _open(random: Random, spec: Body) -> None:
    _spec_schema(random, spec)["x-kubernetes-preserve-unknown-fields"] = True


_CHANGES: Final[tuple[Callable[[Random, Body], None], ...]] = (
    _property_gone,
    _property_gone,
    _property_new,
    _stricter,
    _stricter,
    _storage,
    _storage,
    _served,
    _version_new,
    _version_gone,
    _columns,
    _status,
    _scale,
    _names,
    _selectable,
    _deprecated,
    _open,
)

__all__ = ["Defined", "cases"]

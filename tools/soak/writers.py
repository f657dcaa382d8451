"""Writers of the soak (command.py): what they write, and what the server must remember of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import urllib.parse
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from .http_client import Client, ConnectionLost
from .informer import BrokenPromise, Key, Object, View, ask, key_of, version_of

NAMESPACES = ("soak-a", "soak-b", "soak-b-2", "soak-c")
COLORS = ("red", "green", "blue", "")
FINALIZER = "soak.example.com/hold"
OWN_NAMES = 6
"""Objects of each kind and namespace that a writer has for itself."""
SHARED_NAMES = 2
LINGER = 1.0
"""Seconds after which what a server has sent to its storage before it was killed is done, or never is."""


@dataclass(frozen=True)
class Kind:
    """A resource to write to."""

    plural: str
    prefix: str
    api_version: str
    kind: str
    body: Callable[[random.Random], Object]
    """A new object but for its metadata."""
    change: Callable[[Object, random.Random], None]
    """Changes one, other than in its labels."""

    def path(self, namespace: str = "", name: str = "") -> str:
        within = f"/namespaces/{namespace}" if namespace else ""
        return f"{self.prefix}{within}/{self.plural}" + (f"/{name}" if name else "")


def text(chance: random.Random) -> str:
    """Mostly short; some of it is too long for a slow reader's buffers."""
    return chance.randbytes(chance.choice([5, 100, 100, 500, 500, 2000, 50_000])).hex()


def number(chance: random.Random) -> int:
    return chance.randrange(1, 1000)


def deployment(chance: random.Random) -> Object:
    labels = {"app": "soak"}
    return {
        "spec": {
            "replicas": number(chance),
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": f"image:{number(chance)}"}]},
            },
        }
    }


def service(chance: random.Random) -> Object:
    spec: Object = {"selector": {"app": "soak"}, "ports": [{"port": number(chance)}]}
    if chance.random() < 0.7:
        spec["clusterIP"] = "None"
    return {"spec": spec}


def event(chance: random.Random) -> Object:
    return {
        "type": chance.choice(["Normal", "Warning"]),
        "reason": chance.choice(["Started", "Failed"]),
        "message": text(chance)[:1000],
        "involvedObject": {"kind": "Pod", "name": f"pod-{chance.randrange(3)}"},
        "count": 1,
    }


KINDS = (
    Kind(
        "configmaps",
        "/api/v1",
        "v1",
        "ConfigMap",
        lambda chance: {"data": {"text": text(chance)}},
        lambda obj, chance: obj["data"].update(text=text(chance)),
    ),
    Kind(
        "secrets",
        "/api/v1",
        "v1",
        "Secret",
        lambda chance: {"stringData": {"text": text(chance)}, "type": chance.choice(["Opaque", "example.com/soak"])},
        lambda obj, chance: obj.update(stringData={"text": text(chance)}),
    ),
    Kind(
        "services",
        "/api/v1",
        "v1",
        "Service",
        service,
        lambda obj, chance: obj["spec"]["ports"][0].update(port=number(chance)),
    ),
    Kind(
        "deployments",
        "/apis/apps/v1",
        "apps/v1",
        "Deployment",
        deployment,
        lambda obj, chance: obj["spec"].update(replicas=number(chance)),
    ),
    Kind(
        "events",
        "/api/v1",
        "v1",
        "Event",
        event,
        lambda obj, chance: obj.update(count=obj["count"] + 1, reason=chance.choice(["Started", "Failed"])),
    ),
)


class Ledger:
    """Acknowledged writes: by plural, the version and key of each."""

    def __init__(self) -> None:
        self.writes: dict[str, dict[int, Key]] = {kind.plural: {} for kind in KINDS}

    def acknowledge(self, kind: Kind, obj: Object) -> None:
        self.writes[kind.plural][version_of(obj)] = key_of(obj)

    def check(self, kind: Kind, view: View) -> int:
        """Return the number of writes that the view must have seen if it selects nothing. Raises BrokenPromise.

        These are the writes after its list and up to its version.
        """
        if not view.scope.whole:
            return 0
        namespace = view.scope.namespace
        due = {
            version: key
            for version, key in self.writes[kind.plural].items()
            if view.since < version <= view.version and namespace in ("", key[0])
        }
        missing = sorted(due.keys() - view.seen)
        if missing:
            raise BrokenPromise(
                f"{view.scope} at {view.version} was not told of {len(missing)} writes, as of {due[missing[0]]} at "
                f"{missing[0]}"
            )
        return len(due)


class Writer:
    """Writes at random. It knows what its own objects must be, and holds that against what it reads."""

    def __init__(self, client: Client, name: str, ledger: Ledger, counts: Counter[str], chance: random.Random) -> None:
        self.own: dict[tuple[Kind, Key], Object] = {}
        self.client = client
        self.name = name
        self._ledger = ledger
        self._counts = counts
        self._chance = chance
        self._doubtful: dict[tuple[Kind, Key], bool] = {}
        """Objects of which a write was not answered; whether it may have removed them."""

    async def run(self, seconds_between: float, stop: asyncio.Event) -> None:
        """Writes until told to stop; then settles what is in doubt. Raises BrokenPromise."""
        while not stop.is_set():
            kind, namespace = self._chance.choice(KINDS), self._chance.choice(NAMESPACES)
            try:
                await self._write(kind, namespace)
            except ConnectionLost:
                await asyncio.sleep(LINGER)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), self._chance.expovariate(1 / seconds_between))
        while self._doubtful:
            with contextlib.suppress(ConnectionLost):
                await self._settle(*next(iter(self._doubtful)))
            await asyncio.sleep(0.05)

    async def _write(self, kind: Kind, namespace: str) -> None:
        if self._chance.random() < 0.02:
            await self._delete_collection(kind, namespace)
        elif self._chance.random() < 0.2:
            await self._write_shared(kind, NAMESPACES[1], f"shared-{self._chance.randrange(SHARED_NAMES)}")
        else:
            key = namespace, f"{self.name}-{self._chance.randrange(OWN_NAMES)}"
            if (kind, key) in self._doubtful:
                await self._settle(kind, key)
            else:
                await self._write_own(kind, key)

    # Requests

    async def _send(
        self, method: str, target: str, body: object = None, content_type: str = "application/json"
    ) -> tuple[int, Object]:
        """Status and answer; what is busy or ending is asked again, anything that cannot be is raised."""
        while True:
            data = b"" if body is None else json.dumps(body).encode()
            status, answer = await ask(self.client, method, target, data, content_type=content_type)
            if status in (200, 201, 404, 409):
                return status, answer
            if status not in (429, 503):
                raise BrokenPromise(f"{method} {target} was answered {status}: {answer}")
            self._counts[f"answers {status}"] += 1
            await asyncio.sleep(0.05)

    def _acknowledged(self, kind: Kind, answer: Object) -> None:
        self._counts["writes"] += 1
        if answer["kind"] == kind.kind:
            self._ledger.acknowledge(kind, answer)

    def _metadata(self, key: Key) -> Object:
        chance = self._chance
        metadata: Object = {"namespace": key[0], "name": key[1], "labels": {"writer": self.name}}
        if color := chance.choice(COLORS):
            metadata["labels"]["color"] = color
        if chance.random() < 0.1:
            metadata["finalizers"] = [FINALIZER]
        return metadata

    def _body(self, kind: Kind, key: Key) -> Object:
        body = {**kind.body(self._chance), "metadata": self._metadata(key)}
        if "involvedObject" in body:
            body["involvedObject"]["namespace"] = key[0]
        return body

    def _patch(self, obj: Object) -> tuple[str, object]:
        """Content type and body of a patch of labels or annotations; it takes away the finalizers of what is going."""
        chance = self._chance
        if "deletionTimestamp" in obj["metadata"]:
            return "application/merge-patch+json", {"metadata": {"finalizers": None}}
        if chance.random() < 0.5:
            return "application/merge-patch+json", {"metadata": {"labels": {"color": chance.choice(COLORS) or None}}}
        annotations = [{"op": "add", "path": "/metadata/annotations", "value": {"note": text(chance)}}]
        return "application/json-patch+json", annotations

    # Objects of its own

    @contextlib.contextmanager
    def _unless_lost(self, kind: Kind, key: Key, *, removes: bool) -> Iterator[None]:
        try:
            yield
        except ConnectionLost:
            self._doubtful[kind, key] = removes
            raise

    async def _write_own(self, kind: Kind, key: Key) -> None:
        chance = self._chance
        known = self.own.get((kind, key))
        path = kind.path(*key)
        if known is None:
            with self._unless_lost(kind, key, removes=False):
                status, answer = await self._send("POST", kind.path(key[0]), self._body(kind, key))
            self._expect(status == 201, "POST", path, answer)
        elif chance.random() < 0.2 and "deletionTimestamp" not in known["metadata"]:
            await self._delete_own(kind, key, known)
            return
        elif chance.random() < 0.5 or "deletionTimestamp" in known["metadata"]:
            content_type, patch = self._patch(known)
            with self._unless_lost(kind, key, removes=patch == {"metadata": {"finalizers": None}}):
                status, answer = await self._send("PATCH", path, patch, content_type)
            self._expect(status == 200, "PATCH", path, answer)
        else:
            changed: Object = json.loads(json.dumps(known))
            kind.change(changed, chance)
            with self._unless_lost(kind, key, removes=False):
                status, answer = await self._send("PUT", path, changed)
            self._expect(status == 200, "PUT", path, answer)
        self._learn(kind, answer)
        if kind.plural == "deployments" and chance.random() < 0.2 and (kind, key) in self.own:
            await self._report_status(kind, key)

    async def _report_status(self, kind: Kind, key: Key) -> None:
        path = kind.path(*key) + "/status"
        patch = {"status": {"observedGeneration": number(self._chance)}}
        with self._unless_lost(kind, key, removes=False):
            status, answer = await self._send("PATCH", path, patch, "application/merge-patch+json")
        self._expect(status == 200, "PATCH", path, answer)
        self._learn(kind, answer)

    def _learn(self, kind: Kind, answer: Object) -> None:
        """An object as it was answered to a write."""
        self._acknowledged(kind, answer)
        metadata = answer["metadata"]
        del answer["kind"], answer["apiVersion"]
        if "deletionTimestamp" in metadata and not metadata.get("finalizers"):
            self.own.pop((kind, key_of(answer)), None)
        else:
            self.own[kind, key_of(answer)] = answer

    async def _delete_own(self, kind: Kind, key: Key, known: Object) -> None:
        policy = self._chance.choice([None, "Background", "Foreground", "Orphan"])
        options = {"propagationPolicy": policy, "preconditions": {"uid": known["metadata"]["uid"]}} if policy else None
        path = kind.path(*key)
        with self._unless_lost(kind, key, removes=True):
            status, answer = await self._send("DELETE", path, options)
        self._expect(status == 200, "DELETE", path, answer)
        if answer["metadata"].get("finalizers") and "deletionTimestamp" in answer["metadata"]:
            self._learn(kind, answer)
        else:  # answered with a Status, or with what it was
            self._counts["writes"] += 1
            del self.own[kind, key]

    def check(self, kind: Kind, listed: Mapping[Key, Object]) -> None:
        """Holds what it was told last of its objects against a list of all. Raises BrokenPromise.

        Its objects have its name and a number; an event that a server writes about one has a name with a dot.
        """
        known = {key: obj for (each, key), obj in self.own.items() if each is kind}
        own = f"{self.name}-"
        found = {key: obj for key, obj in listed.items() if key[1].startswith(own) and "." not in key[1]}
        for key in known.keys() | found.keys():
            if known.get(key) != found.get(key):
                raise BrokenPromise(f"{kind.plural} {key} is {found.get(key)}, but {known.get(key)} was acknowledged")

    async def _delete_collection(self, kind: Kind, namespace: str) -> None:
        """Deletes its own objects in a namespace; those with finalizers stay for now."""
        mine = [key for each, key in self.own if each is kind and key[0] == namespace]
        target = f"{kind.path(namespace)}?labelSelector={urllib.parse.quote(f'writer={self.name}')}"
        try:
            status, answer = await self._send("DELETE", target)
        except ConnectionLost:
            self._doubtful.update({(kind, key): True for key in mine})
            raise
        self._expect(status == 200, "DELETE", target, answer)
        self._counts["collections deleted"] += 1
        for key in mine:
            if self.own[kind, key]["metadata"].get("finalizers"):
                self._doubtful[kind, key] = False
            else:
                del self.own[kind, key]

    async def _settle(self, kind: Kind, key: Key) -> None:
        """Finds out what became of a write that was not answered; what was acknowledged before it must be there."""
        known = self.own.get((kind, key))
        status, answer = await self._send("GET", kind.path(*key))
        removed = self._doubtful.pop((kind, key))
        if status == 404:
            if known is not None and not removed:
                raise BrokenPromise(f"{kind.plural} {key}, acknowledged at {version_of(known)}, is lost")
            self.own.pop((kind, key), None)
            return
        self._expect(status == 200, "GET", kind.path(*key), answer)
        del answer["kind"], answer["apiVersion"]
        if known is not None and (
            version_of(answer) < version_of(known) or (version_of(answer) == version_of(known) and answer != known)
        ):
            raise BrokenPromise(f"{kind.plural} {key} is {answer}, but {known} was acknowledged")
        self.own[kind, key] = answer

    # Objects of several writers

    async def _write_shared(self, kind: Kind, namespace: str, name: str) -> None:
        chance = self._chance
        path = kind.path(namespace, name)
        status, current = await self._send("GET", path)
        if status == 404:
            status, answer = await self._send("POST", kind.path(namespace), self._body(kind, (namespace, name)))
        elif chance.random() < 0.3 and "deletionTimestamp" not in current["metadata"]:
            status, answer = await self._send("DELETE", path)
        elif chance.random() < 0.5 or "deletionTimestamp" in current["metadata"]:
            content_type, patch = self._patch(current)
            status, answer = await self._send("PATCH", path, patch, content_type)
        else:
            kind.change(current, chance)
            status, answer = await self._send("PUT", path, current)
        if status in (404, 409):
            self._counts["conflicts"] += 1
        else:
            self._acknowledged(kind, answer)

    def _expect(self, right: bool, method: str, path: str, answer: Object) -> None:
        if not right:
            raise BrokenPromise(f"{method} {path}, which has one writer only, was answered {answer}")

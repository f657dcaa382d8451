"""A definition, and a small operator of it in a thread, with faults to be found."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from http.client import HTTPException
from typing import Any, Final

from steersman.testing import BlockingClient, ThreadedEnvironment

WIDGETS: Final = "/apis/example.com/v1/namespaces/default/widgets"
MAPS: Final = "/api/v1/namespaces/default/configmaps"
HALF_AN_HOUR: Final = 1800.0
MERGE: Final = {"Content-Type": "application/merge-patch+json"}

DEFINITION: Final[dict[str, Any]] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["color"],
                                "properties": {
                                    "color": {"type": "string", "enum": ["red", "green", "blue"]},
                                    "size": {"type": "integer", "minimum": 1, "maximum": 10},
                                },
                            },
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["mode", "ports", "names"],
    "properties": {
        "mode": {"type": "string", "enum": ["Fixed", "Auto"]},
        "fixed": {"type": "integer", "minimum": 3, "maximum": 9, "multipleOf": 3},
        "least": {"type": "integer", "minimum": 0},
        "most": {"type": "integer", "minimum": 0, "maximum": 50},
        "ratio": {"type": "number", "minimum": 0, "maximum": 1, "exclusiveMaximum": True},
        "percent": {"x-kubernetes-int-or-string": True},
        "note": {"type": "string", "nullable": True, "minLength": 2, "maxLength": 4},
        "since": {"type": "string", "format": "date-time"},
        "ports": {
            "type": "array",
            "minItems": 1,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
            "items": {
                "type": "object",
                "required": ["port"],
                "properties": {
                    "port": {"type": "integer", "minimum": 1, "maximum": 3},
                    "protocol": {"type": "string", "default": "TCP", "enum": ["TCP", "UDP"]},
                },
            },
        },
        "names": {
            "type": "array",
            "minItems": 2,
            "maxItems": 3,
            "x-kubernetes-list-type": "set",
            "items": {"type": "string", "pattern": "^[ab]{1,2}$"},
        },
        "labels": {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string", "maxLength": 3}},
        "source": {
            "type": "object",
            "oneOf": [{"required": ["file"]}, {"required": ["url"]}],
            "properties": {"file": {"type": "string"}, "url": {"type": "string", "format": "uri"}},
        },
        "template": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
    "x-kubernetes-validations": [
        {"rule": "self.mode == 'Fixed' ? has(self.fixed) : !has(self.fixed)", "message": "fixed needs the mode Fixed"},
        {"rule": "!has(self.least) || !has(self.most) || self.least <= self.most"},
        {
            "rule": "self.ports.exists(p, p.port == 2)",
            "messageExpression": "'no port 2 of ' + string(size(self.ports))",
        },
    ],
}


def definition(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the definition of Widgets with another schema of its spec."""
    version: dict[str, Any] = DEFINITION["spec"]["versions"][0]
    root = {"type": "object", "required": ["spec"], "properties": {"spec": schema}}
    return {
        **DEFINITION,
        "spec": {**DEFINITION["spec"], "versions": [{**version, "schema": {"openAPIV3Schema": root}}]},
    }


class Operator:
    """Keeps a ConfigMap for each Widget, with its color and size.

    `fault` is one of: `stale` (changes are not followed), `orphan` (the ConfigMap has no owner), `busy` (the status is
    written all the time), `finalizer` (never removed), `generation` (observed once only).
    """

    def __init__(self, environment: ThreadedEnvironment, fault: str = "") -> None:
        self._environment = environment
        self._fault = fault
        self._end = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the operator in a thread."""
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._end.set()
            thread.join()

    def _run(self) -> None:
        with self._environment.client() as client:
            while not self._end.wait(0.01):
                try:
                    for widget in client.json("GET", WIDGETS)[1].get("items", []):
                        self._reconcile(client, widget)
                except (OSError, HTTPException):
                    continue  # an injected fault: the next pass does it

    def _reconcile(self, client: BlockingClient, widget: dict[str, Any]) -> None:
        metadata, spec = widget["metadata"], widget["spec"]
        name = metadata["name"]
        if self._fault == "finalizer" and not metadata.get("finalizers"):
            client.request("PATCH", f"{WIDGETS}/{name}", {"metadata": {"finalizers": ["example.com/keep"]}}, MERGE)
        if metadata.get("deletionTimestamp"):
            return
        owner = {"apiVersion": "example.com/v1", "kind": "Widget", "name": name, "uid": metadata["uid"]}
        wanted = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "ownerReferences": [] if self._fault == "orphan" else [owner]},
            "data": {"color": spec["color"], "size": str(spec.get("size", 1))},
        }
        status, found = client.json("GET", f"{MAPS}/{name}")
        if status == 404 or (status == 200 and found["data"] != wanted["data"] and self._fault != "stale"):
            apply = {"Content-Type": "application/apply-patch+yaml"}
            client.request("PATCH", f"{MAPS}/{name}?fieldManager=op&force=true", json.dumps(wanted).encode(), apply)
        told = widget.get("status") or {}
        generation = metadata["generation"]
        if self._fault == "busy":
            new = {"passes": told.get("passes", 0) + 1}
        elif self._fault == "generation" and "observedGeneration" in told:
            return
        else:
            new = {"observedGeneration": generation}
        if new.items() - told.items():
            client.request("PATCH", f"{WIDGETS}/{name}/status", {"status": new}, MERGE)


class Keeper:
    """Keeps one ConfigMap with a generated name for each Widget, and makes a new one after half an hour.

    It remembers the names. `fault` is one of: `restart` (a new process remembers nothing, and does not look), `lost`
    (after an error it does not look either), `advance` (the ConfigMap that is renewed stays). `now` returns the time
    in seconds.
    """

    def __init__(self, environment: ThreadedEnvironment, fault: str = "", now: Callable[[], float] = time.time) -> None:
        self._environment = environment
        self._fault = fault
        self._now = now
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the operator in a thread."""
        self._start()
        try:
            yield
        finally:
            self._stop()

    def restart(self) -> None:
        """End the operator and start it again."""
        self._stop()
        self._start()

    def _start(self) -> None:
        self._end.clear()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _stop(self) -> None:
        assert self._thread is not None
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        known: dict[str, dict[str, Any]] | None = {} if self._fault == "restart" else None
        with self._environment.client() as client:
            while not self._end.wait(0.01):
                try:
                    if known is None:
                        known = _maps_by_owner(client)
                    if known is not None:
                        for widget in client.json("GET", WIDGETS)[1].get("items", []):
                            self._reconcile(client, widget, known)
                except (OSError, HTTPException):  # an injected fault: the next pass does it
                    if self._fault != "lost":
                        known = None

    def _reconcile(self, client: BlockingClient, widget: dict[str, Any], known: dict[str, dict[str, Any]]) -> None:
        metadata = widget["metadata"]
        uid, data = metadata["uid"], {"color": widget["spec"]["color"]}
        found = known.get(uid)
        if found is None:
            owner = {"apiVersion": "example.com/v1", "kind": "Widget", "name": metadata["name"], "uid": uid}
            new = {"metadata": {"generateName": "kept-", "ownerReferences": [owner]}, "data": data}
            status, made = client.json("POST", MAPS, new)
            if status == 201:
                known[uid] = made
        elif found["data"] != data:
            status, answer = client.request("PATCH", f"{MAPS}/{found['metadata']['name']}", {"data": data}, MERGE)
            if status == 200:
                known[uid] = json.loads(answer)
        elif self._now() - _moment(found["metadata"]["creationTimestamp"]) > HALF_AN_HOUR:
            path = f"{MAPS}/{found['metadata']['name']}"
            if self._fault == "advance" or client.request("DELETE", path)[0] in (200, 404):
                del known[uid]
        kept = known.get(uid)
        if kept is not None and kept["data"] == data:
            new = {"observedGeneration": metadata["generation"], "since": kept["metadata"]["creationTimestamp"]}
            if widget.get("status") != new:
                client.request("PATCH", f"{WIDGETS}/{metadata['name']}/status", {"status": new}, MERGE)

    def is_kept(self, widget: dict[str, Any]) -> bool:
        """Return True if the status of a Widget tells of a ConfigMap that fits, and need not be renewed yet."""
        metadata, status = widget["metadata"], widget.get("status") or {}
        if status.get("observedGeneration") != metadata["generation"]:
            return False
        return self._now() - _moment(status["since"]) <= HALF_AN_HOUR


def _maps_by_owner(client: BlockingClient) -> dict[str, dict[str, Any]] | None:
    """Return the ConfigMaps by the UIDs of their owners; None if the server does not answer."""
    status, found = client.json("GET", MAPS)
    if status != 200:
        return None
    owned = [each for each in found["items"] if "ownerReferences" in each["metadata"]]
    return {each["metadata"]["ownerReferences"][0]["uid"]: each for each in owned}


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()

"""A definition, and a small operator of it in a thread, with faults to be found."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from typing import Any, Final

from steersman.testing import BlockingClient, ThreadedEnvironment

WIDGETS: Final = "/apis/example.com/v1/namespaces/default/widgets"
MAPS: Final = "/api/v1/namespaces/default/configmaps"
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

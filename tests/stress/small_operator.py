"""Parts that the operators share: lists and watches that go on after errors."""

from __future__ import annotations

import json
import os
import time
import urllib.error
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.stress.copying_operator import NAMESPACE, Api

CONFIG_MAPS = f"{NAMESPACE}/configmaps"
MERGE = "application/merge-patch+json"
_PAUSE = 0.05
"""Seconds before a reconciliation is tried again after an error."""


def api_for(program: str) -> Api:
    """Return a client with the credentials of the environment's kubeconfig; `program` is its user agent."""
    return Api.of(Path(os.environ["KUBECONFIG"]), program)


def changes(api: Api, label: str) -> Iterator[tuple[str, Any]]:
    """Yield SYNC with the items of a list of ConfigMaps, then the events of a watch until it ends. Raises OSError."""
    target = f"{CONFIG_MAPS}?labelSelector={label}"
    found = api.request("GET", target)
    yield "SYNC", found["items"]
    version = found["metadata"]["resourceVersion"]
    with api.open("GET", f"{target}&watch=true&resourceVersion={version}") as events:
        for line in events:
            event = json.loads(line)
            if event["type"] == "ERROR":
                return
            yield event["type"], event["object"]


def follow(api: Api, label: str, receive: Callable[[str, Any], None]) -> None:
    """Call `receive` with all changes of ConfigMaps, with a new list whenever a watch ends."""
    while True:
        try:
            for kind, found in changes(api, label):
                receive(kind, found)
        except OSError as error:
            print(f"again after: {error}", flush=True)
            time.sleep(_PAUSE)


def objects(kind: str, found: Any) -> list[Any]:
    """Return the objects that exist after a change."""
    return list(found) if kind == "SYNC" else [] if kind == "DELETED" else [found]


def retried(work: Callable[[], None]) -> None:
    """Call `work` until it raises no OSError."""
    while True:
        try:
            return work()
        except OSError as error:
            print(f"again after: {error}", flush=True)
            time.sleep(_PAUSE)


def exists_already(error: urllib.error.HTTPError) -> bool:
    """Return True if a server refused to make an object as there is one of its name; other conflicts have the code, too."""
    return error.code == 409 and bool(json.load(error).get("reason") == "AlreadyExists")

"""Objects and watches on a server while cases of priority and fairness are played."""

from __future__ import annotations

import atexit
from typing import Final

from tools.differential.case import NAMESPACE_OF_CASES
from tools.differential.server import Client

_OBJECTS: Final = 60
_SIZE: Final = 20_500
"""Bytes of each, of text: what is binary is shorter in storages that keep protobuf."""
_WATCHES: Final = (
    ("few-watches", "", 12),
    ("many-watches", "", 34),
    ("many-watches", "&fieldSelector=metadata.name%3Dwatched", 11),
)


def populate(client: Client) -> None:
    """Makes them; the watches stay until the program ends."""
    for number in range(_OBJECTS):
        body = {"metadata": {"name": f"c-{number}"}, "data": {"a": "x" * _SIZE}}
        client.ask("POST", f"/api/v1/namespaces/{NAMESPACE_OF_CASES}/configmaps", body)
    for namespace, selector, count in _WATCHES:
        client.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        for _ in range(count):
            watch = client.another()
            watch.begin("GET", f"/api/v1/namespaces/{namespace}/configmaps?watch=1&timeoutSeconds=7200{selector}")
            atexit.register(watch.close)

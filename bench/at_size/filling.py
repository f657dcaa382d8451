"""Fills a storage with many objects, as the server itself stores them, without asking a server for each.

The server makes one object of each kind; all others are its stored value with other names.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from steersman.net.protobuf_fields import varint
from steersman.storage.etcd import messages
from steersman.storage.etcd.members import Members, endpoints
from steersman.storage.sqlite.file import connect
from steersman.storage.sqlite.log import insertion, with_checksum

NAMESPACES: Final = 100
"""Pods and Events are in so many."""
_NODE: Final = "node-000000"
_NUMBER: Final = "00000001"
_UID: Final = "-0000-4000-8000-"
_KINDS: Final = ("pods", "minions", "events")
"""Kinds by their names in keys. The index of a kind is part of the uids of its objects; events refer to pods."""
_ROWS: Final = 5_000
_OPERATIONS: Final = 128
"""Operations of one etcd transaction, the default maximum."""
_TRANSACTIONS: Final = 16
"""At a time."""
_EVENT_SECONDS: Final = 3600


@dataclass(frozen=True)
class Counts:
    """Numbers of objects by kind."""

    events: int
    pods: int
    nodes: int

    @property
    def total(self) -> int:
        return self.events + self.pods + self.nodes


def samples() -> list[tuple[str, dict[str, Any]]]:
    """The object of each kind, and the path it is posted to. Names are as long as those of the others will be."""
    conditions = [
        {
            "type": each,
            "status": "False",
            "reason": "KubeletIsFine",
            "message": "the kubelet has enough of it",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        for each in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]
    node = {
        "metadata": {"name": _NODE, "labels": {"kubernetes.io/hostname": _NODE, "kubernetes.io/os": "linux"}},
        "status": {"conditions": conditions, "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
    }
    container = {
        "name": "web",
        "image": "registry.example.com/shop/web:1.42.0",
        "args": ["--port=8080"],
        "ports": [{"name": "http", "containerPort": 8080}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
    }
    pod = {
        "metadata": {"name": f"pod-{_NUMBER}", "labels": {"app": "web", "pod-template-hash": "5d4f8c7b9"}},
        "spec": {"nodeName": _NODE, "containers": [container]},
    }
    event = {
        "metadata": {"name": f"pod-{_NUMBER}.17a1b2c3d4e5f601"},
        "involvedObject": {
            "kind": "Pod",
            "namespace": "size-00",
            "name": f"pod-{_NUMBER}",
            "uid": f"{_NUMBER}{_UID}000000000000",
            "apiVersion": "v1",
            "resourceVersion": "1234567",
            "fieldPath": "spec.containers{web}",
        },
        "reason": "Pulled",
        "message": 'Container image "registry.example.com/shop/web:1.42.0" already present',
        "source": {"component": "kubelet", "host": _NODE},
        "type": "Normal",
        "count": 1,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "reportingComponent": "kubelet",
        "reportingInstance": _NODE,
    }
    return [
        ("/api/v1/nodes", node),
        ("/api/v1/namespaces/size-00/pods", pod),
        ("/api/v1/namespaces/size-00/events", event),
    ]


class _Template:
    """A stored value, of which others are made with other names, namespaces and uids."""

    def __init__(self, key: str, value: bytes) -> None:
        begin = value.index(b'"uid":"') + 7
        self.key = key
        self._value = value.replace(value[begin : begin + 36], b"%(uid)s")
        self._kind = _KINDS.index(key.split("/")[2])

    def row(self, number: int, nodes: int) -> tuple[str, bytes]:
        """The key and value of the object of a number, from 2 on; the first one is there already."""
        name, space, node = f"{number:08}", f"size-{number % NAMESPACES:02}", f"node-{number % nodes:06}"
        uid = f"{number:08}{_UID}{self._kind:012}"
        if _NODE in self.key:
            node = f"node-{number - 1:06}"
        key = self.key.replace(_NUMBER, name).replace("size-00", space).replace(_NODE, node)
        value = self._value.replace(_NUMBER.encode(), name.encode()).replace(b"size-00", space.encode())
        return key, value.replace(_NODE.encode(), node.encode()).replace(b"%(uid)s", uid.encode())


def _rows(templates: dict[str, _Template], counts: Counts) -> Iterator[tuple[str, bytes]]:
    """All objects but the first of each kind."""
    for kind, count in zip(_KINDS, (counts.pods, counts.nodes, counts.events), strict=True):
        for number in range(2, count + 1):
            yield templates[kind].row(number, counts.nodes)


def _templates(stored: dict[str, bytes]) -> dict[str, _Template]:
    templates = {}
    for key, value in stored.items():
        kind = key.split("/")[2]
        if kind in _KINDS and (kind == "minions" or "/size-00/" in key):
            templates[kind] = _Template(key, value)
    return templates


def fill_file(path: Path, counts: Counts) -> None:
    """Adds rows to the file of a server that has made the samples and ended."""
    with contextlib.closing(connect(path, cache_kib=200_000, durable=False)) as connection:
        newest: int = connection.execute("SELECT max(revision) FROM log").fetchone()[0]
        stored = dict(connection.execute("SELECT key, value FROM log WHERE value IS NOT NULL"))
        rows = _rows(_templates(stored), counts)
        expires = int(time.time()) + _EVENT_SECONDS * 24
        while some := list(islice(rows, _ROWS)):
            made = [
                with_checksum(
                    (revision, key, value, revision, 0, expires if key.startswith("/registry/events/") else 0)
                )
                for revision, (key, value) in enumerate(some, newest + 1)
            ]
            newest += len(made)
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(insertion(1), made)
            connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def fill_etcd(url: str, counts: Counts) -> None:
    """Puts keys into an etcd in which a server has stored the samples. They have no leases."""
    asyncio.run(_fill_etcd(url, counts))


async def _fill_etcd(url: str, counts: Counts) -> None:
    members = Members(endpoints([url]), None)
    try:
        request = messages.range_of(b"/registry/", b"/registry0")
        found = messages.read_range(await members.call(messages.RANGE, request, repeatable=True))
        rows = _rows(_templates({each.key.decode(): each.value for each in found.items}), counts)

        async def put() -> None:
            while some := list(islice(rows, _OPERATIONS)):
                await members.call(messages.TXN, b"".join([_operation(*row) for row in some]), repeatable=True)

        await asyncio.gather(*(put() for _ in range(_TRANSACTIONS)))
    finally:
        members.close()


def _operation(key: str, value: bytes) -> bytes:
    """A put, as an operation of a TxnRequest that is done if its comparisons (none) hold."""
    put = messages.put(key.encode(), value)
    inner = b"\x12" + varint(len(put)) + put
    return b"\x12" + varint(len(inner)) + inner

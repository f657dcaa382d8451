"""Kubeconfigs for clients in other processes."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Access:
    """URL and authority of a server, with the name and token of a user."""

    url: str
    ca: Path
    user: str
    token: str


def kubeconfig(accesses: Mapping[str, Access]) -> bytes:
    """Return a self-contained kubeconfig with a context for each name, the first one current.

    Users of several contexts are named `USER@CONTEXT`.
    """
    users = {name: each.user if len(accesses) == 1 else f"{each.user}@{name}" for name, each in accesses.items()}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": _cluster(each)} for name, each in accesses.items()],
        "users": [{"name": users[name], "user": {"token": each.token}} for name, each in accesses.items()],
        "contexts": [{"name": name, "context": {"cluster": name, "user": users[name]}} for name in accesses],
        "current-context": next(iter(accesses)),
    }
    return json.dumps(content, indent=2).encode() + b"\n"


def _cluster(access: Access) -> dict[str, str]:
    authority = base64.b64encode(access.ca.read_bytes()).decode()
    return {"server": access.url, "certificate-authority-data": authority}

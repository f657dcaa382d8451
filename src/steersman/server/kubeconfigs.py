"""Kubeconfigs for clients of servers: self-contained JSON, which is YAML too."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct


class Context(Struct, frozen=True):
    """A user of a server: its URL and authority, and the user's name and credentials by the names of a kubeconfig."""

    url: str
    ca: Path
    user: str
    credentials: Mapping[str, str]
    server_name: str = ""
    """Name that the server's certificate has to have, "" for that of the URL."""


def kubeconfig(contexts: Mapping[str, Context]) -> bytes:
    """Return a kubeconfig with a context for each name, the first one current.

    Users of several contexts are named `USER@CONTEXT`. Raises OSError.
    """
    users = {name: each.user if len(contexts) == 1 else f"{each.user}@{name}" for name, each in contexts.items()}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": _cluster(each)} for name, each in contexts.items()],
        "users": [{"name": users[name], "user": dict(each.credentials)} for name, each in contexts.items()],
        "contexts": [{"name": name, "context": {"cluster": name, "user": users[name]}} for name in contexts],
        "current-context": next(iter(contexts)),
    }
    return json.dumps(content, indent=2).encode() + b"\n"


def embedded(path: Path) -> str:
    """Return a file as a kubeconfig embeds it. Raises OSError."""
    return base64.b64encode(path.read_bytes()).decode()


def _cluster(context: Context) -> dict[str, str]:
    name = {"tls-server-name": context.server_name} if context.server_name else {}
    return {"server": context.url, "certificate-authority-data": embedded(context.ca), **name}

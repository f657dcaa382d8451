"""Kubeconfigs name their contexts, users and servers so that clients of several servers tell them apart."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from steersman.server.kubeconfigs import Context, kubeconfig


def read(path: Path, *names: str, server_name: str = "") -> dict[str, Any]:
    authority = path / "ca.crt"
    authority.write_bytes(b"authority")
    contexts = {
        name: Context(f"https://{name}:1", authority, "joe", {"token": f"of-{name}"}, server_name) for name in names
    }
    found: dict[str, Any] = json.loads(kubeconfig(contexts))
    return found


def test_one_context_has_the_plain_name_of_its_user(tmp_path: Path) -> None:
    found = read(tmp_path, "a")
    assert found["users"] == [{"name": "joe", "user": {"token": "of-a"}}]
    assert found["contexts"] == [{"name": "a", "context": {"cluster": "a", "user": "joe"}}]
    authority = base64.b64encode(b"authority").decode()
    cluster = {"server": "https://a:1", "certificate-authority-data": authority}
    assert found["clusters"] == [{"name": "a", "cluster": cluster}]


def test_users_of_several_contexts_are_told_apart_and_the_first_context_is_current(tmp_path: Path) -> None:
    found = read(tmp_path, "a", "b")
    assert [each["name"] for each in found["users"]] == ["joe@a", "joe@b"]
    assert [each["context"]["user"] for each in found["contexts"]] == ["joe@a", "joe@b"]
    assert found["current-context"] == "a"


def test_another_name_of_the_certificate_is_told(tmp_path: Path) -> None:
    assert read(tmp_path, "a", server_name="other")["clusters"][0]["cluster"]["tls-server-name"] == "other"

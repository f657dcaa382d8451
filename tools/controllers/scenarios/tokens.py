"""Secrets of service accounts, and of those who join."""

from __future__ import annotations

import base64
import time
from datetime import UTC, datetime
from typing import Any

from tools.controllers.world import World

TYPE = "kubernetes.io/service-account-token"
JOIN = "bootstrap.kubernetes.io/token"


def secret(world: World, name: str, account: str, **annotations: str) -> None:
    metadata = {"name": name, "annotations": {"kubernetes.io/service-account.name": account, **annotations}}
    world.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": TYPE})


def account(world: World, name: str, **parts: Any) -> None:
    world.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}, **parts})


def filled(world: World) -> None:
    world.also("Secret", "ServiceAccount")
    account(world, "a")
    secret(world, "t", "a")
    world.snapshot("filled")
    world.patch("Secret", "t", {"data": {"token": None, "namespace": base64.b64encode(b"other").decode()}})
    world.snapshot("again")
    world.patch("Secret", "t", {"data": {"ca.crt": base64.b64encode(b"forged").decode(), "namespace": None}})
    world.snapshot("mended")


def ended(world: World) -> None:
    world.also("Secret", "ServiceAccount")
    account(world, "a", secrets=[{"name": "t"}, {"name": "u"}, {"name": "other"}])
    for name in ("t", "u"):
        secret(world, name, "a")
    world.settle()
    world.delete("Secret", "t")
    world.snapshot("reference")
    world.delete("ServiceAccount", "a")
    world.snapshot("gone")


def strangers(world: World) -> None:
    world.also("Secret")
    account(world, "a")
    secret(world, "nobody", "none")
    secret(world, "another", "a", **{"kubernetes.io/service-account.uid": "0"})
    world.snapshot("deleted")


def join_token(world: World, name: str, seconds: float | None = None, data: dict[str, str] | None = None) -> None:
    fields = {"token-id": name, "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true", **(data or {})}
    if seconds is not None:
        fields["expiration"] = datetime.fromtimestamp(time.time() + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    metadata = {"name": f"bootstrap-token-{name}", "namespace": "kube-system"}
    world.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": JOIN, "stringData": fields})


def joined(world: World) -> None:
    system, public = world.elsewhere("kube-system"), world.elsewhere("kube-public")
    public.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "cluster-info"},
            "data": {"kubeconfig": "where it is", "jws-kubeconfig-zzzzzz": "old", "other": "stays"},
        }
    )
    join_token(system, "abcdef")
    join_token(system, "aaaaaa", 3600.0)
    join_token(system, "bbbbbb", 3.0)
    join_token(system, "cccccc", -10.0)
    join_token(system, "dddddd", data={"expiration": "tomorrow"})
    join_token(system, "eeeeee", data={"usage-bootstrap-signing": "false"})
    join_token(system, "ffffff", data={"token-id": "gggggg"})
    world.wait(6)
    for label in ("signed", "changed"):
        names = [each["metadata"]["name"] for each in system.list("Secret") if each["type"] == JOIN]
        world.snapshots[label] = {"secrets": sorted(names), "info": public.get("ConfigMap", "cluster-info")["data"]}
        public.patch("ConfigMap", "cluster-info", {"data": {"kubeconfig": "elsewhere"}})
        world.wait(1)


SCENARIOS = {f"tokens_{each.__name__}": each for each in (filled, ended, strangers, joined)}

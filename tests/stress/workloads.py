"""Tests beside the operators: `python -m tests.stress.workloads NAME`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from tests.stress.copying_operator import Api
from tests.stress.small_operator import CONFIG_MAPS, MERGE, api_for

_LONGEST = 5.0
"""Seconds to wait for the operator."""


def wait(condition: Callable[[], Any], what: str) -> None:
    """Wait until a condition is true; end the process with an error if it takes too long."""
    until = time.monotonic() + _LONGEST
    while not condition():
        if time.monotonic() > until:
            sys.exit(f"{what}: not within {_LONGEST:.0f} s")
        time.sleep(0.05)


def make(api: Api, name: str, label: str) -> None:
    """Make a ConfigMap with a label."""
    api.request("POST", CONFIG_MAPS, {"metadata": {"name": name, "labels": {label: ""}}})


def have(api: Api, selector: str) -> list[Any]:
    """Return ConfigMaps by label."""
    found: list[Any] = api.request("GET", f"{CONFIG_MAPS}?labelSelector={selector}")["items"]
    return found


def requests(api: Api) -> None:
    """Make a certificate, and wait until its request is carried out."""
    make(api, "web", "certificate")
    wait(lambda: [each for each in have(api, "request=web") if each.get("data")], "certificate issued")


def heads(api: Api) -> None:
    """Make a cluster, and change it once it has a head."""
    make(api, "rays", "cluster")
    wait(lambda: have(api, "head=rays"), "a head")
    api.request("PATCH", f"{CONFIG_MAPS}/rays", {"data": {"size": "2"}}, MERGE)


def members(api: Api) -> None:
    """Make a member and remove it."""
    make(api, "a", "member")
    wait(lambda: "a" in registered(api), "a registered")
    make(api, "b", "member")
    wait(lambda: "b" in registered(api), "b registered")
    api.request("DELETE", f"{CONFIG_MAPS}/a")


def registered(api: Api) -> dict[str, str]:
    """Return the data of the register."""
    return (api.find(f"{CONFIG_MAPS}/register") or {}).get("data") or {}


WORKLOADS = {"requests": requests, "heads": heads, "members": members}

if __name__ == "__main__":
    WORKLOADS[sys.argv[1]](api_for("test"))

"""Measures strategies: the share of drawn objects that a server accepts, and the objects drawn in a second of CPU.

    python -m tools.strategies_validity [--objects 50] [--only TEXT] [--built-in] [MODULE@VERSION ...]

Definitions are read out of Go modules, which `go mod download` fetches. Objects are created on a server of their own, as
dry runs with strict fields. Exit code 1 if fewer than 99 of 100 objects are accepted.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, settings

from steersman.testing import Client, Environment
from steersman.testing.strategies.errors import StrategyError
from steersman.testing.strategies.objects import Objects, built_in_drawer, drawer

from .compare_definitions import MODULES, definitions_of

KINDS: Final = (
    *("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ControllerRevision", "Job", "CronJob"),
    *(
        "ConfigMap",
        "Secret",
        "ServiceAccount",
        "Namespace",
        "Node",
        "LimitRange",
        "ResourceQuota",
        "Pod",
        "PodTemplate",
    ),
    *("ReplicationController", "Service", "Endpoints", "PersistentVolume", "PersistentVolumeClaim"),
    *("Ingress", "IngressClass", "NetworkPolicy", "IPAddress", "ServiceCIDR"),
    *("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "HorizontalPodAutoscaler", "PodDisruptionBudget"),
)
"""Kinds of core, apps, batch, networking, rbac, autoscaling and policy."""
_TARGET: Final = 0.99
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_SHOWN: Final = 20

Body = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="strategies_validity", description="Measure the validity of drawn objects.")
    parser.add_argument("--objects", type=int, default=50, help="objects of each kind (default: 50)")
    parser.add_argument("--only", default="", help="definitions and kinds whose name has this in it")
    parser.add_argument("--built-in", action="store_true", help="built-in kinds only")
    parser.add_argument("modules", nargs="*", metavar="MODULE@VERSION", help="Go modules (default: well-known ones)")
    options = parser.parse_args(arguments)
    return asyncio.run(_measure(options))


class _Measured:
    """Sums of all kinds."""

    def __init__(self) -> None:
        self.drawn = self.accepted = self.shown = 0
        self.seconds = 0.0

    async def kind(self, client: Client, objects: Objects, count: int) -> None:
        """Draw objects of a kind and send them."""
        begun = time.process_time()
        drawn = await asyncio.to_thread(_drawn, objects, count)
        self.seconds += time.process_time() - begun
        source = objects.source
        root = f"/apis/{source.api_version}" if "/" in source.api_version else f"/api/{source.api_version}"
        of = "/namespaces/default" if source.namespaced else ""
        for each in drawn:
            answer = await client.post(f"{root}{of}/{source.plural}?dryRun=All&fieldValidation=Strict", each)
            self.drawn += 1
            self.accepted += answer.status == 201
            if answer.status != 201 and self.shown < _SHOWN:
                self.shown += 1
                print(f"  {source.kind}: {answer.status} {answer.json().get('message', '')[:300]}", flush=True)

    def told(self, name: str) -> str:
        """Return the sums so far."""
        share = 100 * self.accepted / max(self.drawn, 1)
        speed = self.drawn / max(self.seconds, 0.001)
        return f"{name}: {self.accepted} of {self.drawn} accepted so far ({share:.2f}%), {speed:.0f} objects/s of CPU"


def _drawn(objects: Objects, count: int) -> list[Body]:
    found: list[Body] = []

    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        derandomize=True,
    )
    @given(objects.strategy)
    def keep(obj: Body) -> None:
        found.append(deepcopy(obj))

    keep()
    return found


async def _measure(options: argparse.Namespace) -> int:
    measured = _Measured()
    async with Environment() as environment:
        client = environment.client()
        for kind in KINDS:
            if options.only.lower() in kind.lower() and not options.modules:
                await measured.kind(client, await asyncio.to_thread(built_in_drawer, kind), options.objects)
        print(measured.told("built-in kinds"), flush=True)
        for module in () if options.built_in else options.modules or MODULES:
            for definition in definitions_of(module):
                if options.only in definition["metadata"]["name"]:
                    await _definition(client, definition, measured, options.objects)
            print(measured.told(module), flush=True)
    return 0 if measured.accepted >= _TARGET * measured.drawn else 1


async def _definition(client: Client, definition: Body, measured: _Measured, count: int) -> None:
    name = definition["metadata"]["name"]
    answer = await client.post(_DEFINITIONS, definition)
    if answer.status != 201:
        print(f"  {name}: {answer.status} {answer.json().get('message', '')[:200]}")
        return
    await _served(client, name)
    for version in definition["spec"]["versions"]:
        if not version.get("served"):
            continue
        try:
            objects = await asyncio.to_thread(drawer, definition, "", version["name"])
            await measured.kind(client, objects, count)
        except StrategyError as error:
            print(f"  {name} {version['name']}: {error}", flush=True)
    await client.delete(f"{_DEFINITIONS}/{name}")


async def _served(client: Client, name: str) -> None:
    """Wait until a definition is served."""
    while True:
        conditions = (await client.get(f"{_DEFINITIONS}/{name}")).json().get("status", {}).get("conditions") or ()
        if any(each["type"] == "Established" and each["status"] == "True" for each in conditions):
            return
        await asyncio.sleep(0.01)


if __name__ == "__main__":
    sys.exit(main())

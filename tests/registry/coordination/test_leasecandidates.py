"""LeaseCandidates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman.registry.coordination.leasecandidates import LEASE_CANDIDATES

GROUP = "coordination.k8s.io"
VALID = {"leaseName": "l", "binaryVersion": "1.36.3", "strategy": "example.com/mine"}


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        ({}, ["spec.leaseName: Required value", "spec.binaryVersion: Required value", "spec.strategy: Required value"]),
        (
            VALID | {"binaryVersion": "1", "emulationVersion": "b", "strategy": "mine"},
            [
                'spec.emulationVersion: Invalid value: "b": must be a valid semantic version',
                'spec.binaryVersion: Invalid value: "1": must be a valid semantic version',
                'spec.strategy.strategy: Unsupported value: "mine": supported values: "OldestEmulationVersion"',
            ],
        ),
        (
            VALID | {"emulationVersion": "1.37.0-alpha.1"},
            [
                'spec.binaryVersion: Invalid value: "1.36.3": must be greater than or equal to `emulationVersion`',
            ],
        ),
        (
            VALID | {"strategy": "OldestEmulationVersion"},
            [
                "spec.emulationVersion: Required value: must be specified when `strategy` is 'OldestEmulationVersion'",
            ],
        ),
    ],
)
async def test_invalid_candidate_is_refused(cluster: Callable[..., Any], spec: Any, faults: list[str]) -> None:
    c = await cluster(LEASE_CANDIDATES)
    made = c.create("leasecandidates", {"metadata": {"name": "c"}, "spec": spec}, group=GROUP)
    assert await c.faults(made) == faults


async def test_any_key_of_a_config_map_is_a_name(cluster: Callable[..., Any]) -> None:
    c = await cluster(LEASE_CANDIDATES)
    await c.create("leasecandidates", {"metadata": {"name": "A_b.-"}, "spec": VALID}, group=GROUP)
    [fault] = await c.faults(c.create("leasecandidates", {"metadata": {"name": "a:b"}, "spec": VALID}, group=GROUP))
    assert fault.startswith('metadata.name: Invalid value: "a:b": a valid config key must consist of')


async def test_the_lease_stays(cluster: Callable[..., Any]) -> None:
    c = await cluster(LEASE_CANDIDATES)
    await c.create("leasecandidates", {"metadata": {"name": "c"}, "spec": VALID}, group=GROUP)
    assert await c.faults(c.change("leasecandidates", "c", group=GROUP, leaseName="other")) == [
        'spec.leaseName: Invalid value: "other": field is immutable'
    ]
    changed = await c.change("leasecandidates", "c", group=GROUP, binaryVersion="1.37.0")
    assert changed["spec"]["binaryVersion"] == "1.37.0"

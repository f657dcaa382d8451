"""Worlds of objects that a test writes as YAML, and the findings about one of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from steersman.explain.dump import DumpWorld, load_dump
from steersman.explain.explainers import explain
from steersman.explain.finding import Explanation, Finding
from steersman.explain.kind_names import find_resource


def world_of(folder: Path, text: str) -> DumpWorld:
    """Return the objects of YAML documents."""
    file = folder / "dump.yaml"
    file.write_text(text)
    return load_dump(file)


async def explained(folder: Path, text: str, kind: str, name: str, namespace: str = "default") -> Explanation:
    """Return the explanation of an object in YAML documents."""
    world = world_of(folder, text)
    resource = find_resource(kind, (await world.resources()).served).resource
    return await explain(world, resource, name, namespace)


def every(findings: tuple[Finding, ...]) -> Iterator[Finding]:
    """Yield findings and their causes."""
    for each in findings:
        yield each
        yield from every(each.because)

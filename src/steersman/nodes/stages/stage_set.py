"""Configured stages of a cluster, by kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from steersman.nodes.stages.declaration import StageError, read_stage
from steersman.nodes.stages.selection import Lifecycle

MOST_STAGES: Final = 1000


@dataclass(frozen=True, slots=True)
class Stages:
    """Stages of pods and of nodes. A kind without stages keeps its built-in behaviour."""

    random: Random
    """Source of all random choices in stages."""
    pods: Lifecycle | None = None
    nodes: Lifecycle | None = None

    @classmethod
    def parse(cls, manifests: Iterable[tuple[str, Mapping[str, Any]]], seed: int | None = None) -> Stages:
        """Parse Stage manifests, given with the place where each was found. `seed` makes random choices repeatable.

        Raises StageError for a stage that cannot be used.
        """
        random = Random(seed)
        found: dict[str, Lifecycle] = {}
        for number, (where, manifest) in enumerate(manifests):
            if number >= MOST_STAGES:
                raise StageError(f"more than {MOST_STAGES} stages")
            try:
                stage = read_stage(manifest)
                found.setdefault(stage.spec.resource_ref.kind, Lifecycle(random)).add(stage)
            except StageError as error:
                raise StageError(f"{where}: {error}") from None
        return cls(random, found.get("Pod"), found.get("Node"))

"""The stages that a cluster is given, by the kinds they are about."""

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
    """None for a kind that has no stages: its objects live as they do without."""

    random: Random
    """Of all chance in stages."""
    pods: Lifecycle | None = None
    nodes: Lifecycle | None = None

    @classmethod
    def of(cls, manifests: Iterable[tuple[str, Mapping[str, Any]]], seed: int | None = None) -> Stages:
        """Stages of Stage objects, each with where it was found; `seed` makes chance repeat itself.

        Raises StageError for one that cannot be followed.
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

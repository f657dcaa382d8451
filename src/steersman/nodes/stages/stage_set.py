"""Stages of a cluster by kind: configured ones, and those that are objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import Any, Final

import msgspec

from steersman.nodes.stages.conditions import Conditions
from steersman.nodes.stages.declaration import NODES, PODS, ResourceRef, Stage, StageError, read_stage
from steersman.nodes.stages.selection import Lifecycle

MOST_STAGES: Final = 1000
MOST_STAGE: Final = 1 << 18
"""Bytes of a Stage object's spec."""
MOST_BYTES: Final = 1 << 23
"""Bytes of the specs of all Stage objects together."""


class _Kind:
    """Stages of a kind, and what they were made from."""

    def __init__(self, stages: list[Stage], lifecycle: Lifecycle, errors: Mapping[str, str]) -> None:
        self.stages: Final = stages
        self.lifecycle: Final = lifecycle
        self.errors: Final = errors


class Stages:
    """Stages by kind. A kind without stages keeps its built-in behaviour."""

    def __init__(self, random: Random, conditions: Conditions, configured: Mapping[ResourceRef, list[Stage]]) -> None:
        self.random: Final = random
        """Source of all random choices in stages."""
        self._conditions = conditions
        self._configured = configured
        self._kinds: dict[ResourceRef, _Kind] = {}

    @classmethod
    def parse(cls, manifests: Iterable[tuple[str, Mapping[str, Any]]], seed: int | None = None) -> Stages:
        """Parse the Stage manifests of a configuration, given with the place where each was found.

        `seed` makes random choices repeatable. Raises StageError for a stage that cannot be used.
        """
        random = Random(seed)
        configured: dict[ResourceRef, list[Stage]] = {}
        stages = cls(random, Conditions(random, "self"), configured)
        lifecycles: dict[ResourceRef, Lifecycle] = {}
        for number, (where, manifest) in enumerate(manifests):
            if number >= MOST_STAGES:
                raise StageError(f"more than {MOST_STAGES} stages")
            try:
                stage = read_stage(manifest)
                reference = stage.spec.resource_ref
                if reference not in lifecycles:
                    lifecycles[reference] = stages._new()
                lifecycles[reference].add(stage)
            except StageError as error:
                raise StageError(f"{where}: {error}") from None
            configured.setdefault(reference, []).append(stage)
        for reference, lifecycle in lifecycles.items():
            stages._kinds[reference] = _Kind(configured[reference], lifecycle, {})
        return stages

    def _new(self) -> Lifecycle:
        return Lifecycle(self.random, self._conditions)

    @property
    def pods(self) -> Lifecycle | None:
        """Stages of pods, None if there are none."""
        return self.of(PODS)

    @property
    def nodes(self) -> Lifecycle | None:
        """Stages of nodes, None if there are none."""
        return self.of(NODES)

    @property
    def kinds(self) -> Iterable[ResourceRef]:
        """Kinds that have stages."""
        return self._kinds.keys()

    def of(self, reference: ResourceRef) -> Lifecycle | None:
        """Return the stages of a kind, None if there are none."""
        found = self._kinds.get(reference)
        return None if found is None else found.lifecycle

    def with_objects(self, objects: Iterable[Mapping[str, Any]]) -> tuple[Stages, Mapping[str, str]]:
        """Return the configured stages with those of Stage objects, and the errors of the invalid ones by name.

        A kind whose stages are the same keeps its lifecycle.
        """
        wanted = {reference: list(stages) for reference, stages in self._configured.items()}
        errors: dict[str, str] = {}
        left, size = MOST_STAGES, 0
        for each in objects:
            name = str(each["metadata"]["name"])
            length = len(msgspec.json.encode(each.get("spec")))
            left, size = left - 1, size + length
            try:
                if left < 0 or size > MOST_BYTES or length > MOST_STAGE:
                    raise StageError(
                        f"Stage {name}: more than {MOST_STAGES} stages, {MOST_STAGE} bytes, or {MOST_BYTES} in all"
                    )
                stage = read_stage(each)
                wanted.setdefault(stage.spec.resource_ref, []).append(stage)
            except StageError as error:
                errors[name] = str(error)
        stages = Stages(self.random, self._conditions, self._configured)
        for reference, found in wanted.items():
            before = self._kinds.get(reference)
            stages._kinds[reference] = (
                before if before is not None and before.stages == found else self._compiled(found)
            )
            errors.update(stages._kinds[reference].errors)
        return stages, errors

    def _compiled(self, stages: list[Stage]) -> _Kind:
        lifecycle = self._new()
        errors: dict[str, str] = {}
        for each in stages:
            try:
                lifecycle.add(each)
            except StageError as error:
                errors[each.metadata.name] = str(error)
        return _Kind(stages, lifecycle, errors)

"""The revisions of a StatefulSet: which its pods have, which they are to get (stateful_set_control.go)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from steersman.api.apps.v1 import ControllerRevision, StatefulSet
from steersman.api.core.v1 import Pod
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.errors import is_already_exists
from steersman.client.resources import CONTROLLER_REVISIONS, STATEFUL_SETS
from steersman.controllers.stateful_set.identity import revision_of
from steersman.controllers.workloads.controller_ref import new_controller_ref
from steersman.controllers.workloads.revisions import data_of, holds, in_order, revision_hash, template_of
from steersman.machinery.errors.status import StatusError

_HASH: Final = "controller.kubernetes.io/hash"
_MAX_PREFIX: Final = 223


@dataclass(frozen=True, slots=True)
class Revisions:
    """The revision that all pods had, the one that they are to get, the set with the template of each, and how often
    names collided."""

    current: ControllerRevision
    update: ControllerRevision
    current_set: StatefulSet
    update_set: StatefulSet
    collision_count: int


async def find(client: Client, stateful_set: StatefulSet, known: Iterable[ControllerRevision]) -> Revisions:
    """Finds the revisions of a set among those that are its own, and makes the one of its template if need be."""
    data = data_of(stateful_set.spec.template)
    revisions = sorted(known, key=in_order)
    collisions = stateful_set.status.collision_count or 0
    same = [each for each in revisions if holds(each, data)]
    newest = revisions[-1].revision + 1 if revisions else 1
    if not same:
        update, collisions = await _make(client, stateful_set, data, newest, collisions)
    elif holds(revisions[-1], data):
        update = revisions[-1]
    else:
        update = same[-1]
        if update.revision != newest:
            update = await client.update(CONTROLLER_REVISIONS, msgspec.structs.replace(update, revision=newest))
    name = stateful_set.status.current_revision
    current = next((each for each in revisions if each.metadata.name == name), update)
    current_set = stateful_set if holds(current, data) else _with_template(stateful_set, current)
    return Revisions(current, update, current_set, stateful_set, collisions)


def _with_template(stateful_set: StatefulSet, revision: ControllerRevision) -> StatefulSet:
    spec = msgspec.structs.replace(stateful_set.spec, template=template_of(revision))
    return msgspec.structs.replace(stateful_set, spec=spec)


async def _make(
    client: Client, stateful_set: StatefulSet, data: bytes, number: int, collisions: int
) -> tuple[ControllerRevision, int]:
    """Makes a revision under the first name that no other has."""
    metadata = stateful_set.metadata
    labels = {**stateful_set.spec.template.metadata.labels, _HASH: revision_hash(data, collisions)}
    while True:
        name = f"{metadata.name[:_MAX_PREFIX]}-{revision_hash(data, collisions)}"
        revision = ControllerRevision(
            metadata=ObjectMeta(
                name=name, namespace=metadata.namespace, labels=labels, annotations=dict(metadata.annotations),
                owner_references=[new_controller_ref(STATEFUL_SETS, stateful_set)],
            ),
            data=msgspec.Raw(data), revision=number,
        )  # fmt: skip
        try:
            return await client.create(CONTROLLER_REVISIONS, revision), collisions
        except StatusError as error:
            if not is_already_exists(error):
                raise
        existing = await client.get(CONTROLLER_REVISIONS, name, metadata.namespace)
        if holds(existing, data):
            return existing, collisions
        collisions += 1


async def truncate(
    client: Client, stateful_set: StatefulSet, known: Iterable[ControllerRevision], found: Revisions,
    pods: Sequence[Pod],
) -> None:  # fmt: skip
    """Deletes the oldest revisions that no pod is of, and that are more than the history is to have."""
    live = {found.current.metadata.name, found.update.metadata.name, *map(revision_of, pods)}
    dead = [each for each in sorted(known, key=in_order) if each.metadata.name not in live]
    limit = stateful_set.spec.revision_history_limit
    limit = 10 if limit is None else limit
    for each in dead[: max(len(dead) - limit, 0)] if limit >= 0 else ():
        await client.delete(CONTROLLER_REVISIONS, each.metadata.name, each.metadata.namespace)

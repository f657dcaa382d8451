"""Revisions of a StatefulSet: the current one and the update revision (stateful_set_control.go)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from steersman.api.apps.v1 import ControllerRevision, StatefulSet
from steersman.api.core.v1 import Pod
from steersman.client.client import Client
from steersman.client.errors import ignoring, is_already_exists
from steersman.client.resources import CONTROLLER_REVISIONS, STATEFUL_SETS
from steersman.controllers.stateful_set.identity import revision_of
from steersman.controllers.workloads.large_templates import offload_if_large
from steersman.controllers.workloads.revisions import (
    equal_revisions,
    has_data,
    new_revision,
    revision_hash,
    revision_sort_key,
    revision_template,
)

_HASH: Final = "controller.kubernetes.io/hash"
_MAX_PREFIX: Final = 223


class Revisions(Struct, frozen=True):
    """Current revision and update revision, the set with the template of each, and the count of name collisions."""

    current: ControllerRevision
    update: ControllerRevision
    current_set: StatefulSet
    update_set: StatefulSet
    collision_count: int


async def find_revisions(
    client: Client, stateful_set: StatefulSet, candidates: Iterable[ControllerRevision]
) -> Revisions:
    """Return the revisions of a set, from `candidates` ones; the revision of its present template is created if it is
    missing.
    """
    template, revisions = stateful_set.spec.template, sorted(candidates, key=revision_sort_key)
    data, same = await offload_if_large(template, equal_revisions, template, revisions)
    collisions = stateful_set.status.collision_count or 0
    newest = revisions[-1].revision + 1 if revisions else 1
    if not same:
        update, collisions = await _create(client, stateful_set, data, newest, collisions)
    elif revisions[-1] is same[-1]:
        update = revisions[-1]
    else:
        update = same[-1]
        if update.revision != newest:
            update = await client.update(CONTROLLER_REVISIONS, msgspec.structs.replace(update, revision=newest))
    name = stateful_set.status.current_revision
    current = next((each for each in revisions if each.metadata.name == name), update)
    current_set = stateful_set
    if current is not update and current not in same:
        current_set = await offload_if_large(template, _with_template, stateful_set, current)
    return Revisions(current, update, current_set, stateful_set, collisions)


def _with_template(stateful_set: StatefulSet, revision: ControllerRevision) -> StatefulSet:
    spec = msgspec.structs.replace(stateful_set.spec, template=revision_template(revision))
    return msgspec.structs.replace(stateful_set, spec=spec)


async def _create(
    client: Client, stateful_set: StatefulSet, data: bytes, number: int, collisions: int
) -> tuple[ControllerRevision, int]:
    """Create a revision under the first free name. Return the revision, and the new count of collisions."""
    metadata, template = stateful_set.metadata, stateful_set.spec.template
    hash_ = await offload_if_large(template, revision_hash, data, collisions)
    labels = {_HASH: hash_}
    while True:
        name = f"{metadata.name[:_MAX_PREFIX]}-{hash_}"
        revision = new_revision(STATEFUL_SETS, stateful_set, name, labels, data, number)
        with ignoring(is_already_exists):
            return await client.create(CONTROLLER_REVISIONS, revision), collisions
        existing = await client.get(CONTROLLER_REVISIONS, name, metadata.namespace)
        if await offload_if_large(template, has_data, existing, data):
            return existing, collisions
        collisions += 1
        hash_ = await offload_if_large(template, revision_hash, data, collisions)


async def truncate(
    client: Client,
    stateful_set: StatefulSet,
    revisions: Iterable[ControllerRevision],
    found: Revisions,
    pods: Sequence[Pod],
) -> None:
    """Delete the oldest unused revisions beyond the history limit."""
    live = {found.current.metadata.name, found.update.metadata.name, *map(revision_of, pods)}
    dead = [each for each in sorted(revisions, key=revision_sort_key) if each.metadata.name not in live]
    limit = stateful_set.spec.revision_history_limit
    limit = 10 if limit is None else limit
    for each in dead[: max(len(dead) - limit, 0)] if limit >= 0 else ():
        await client.delete(CONTROLLER_REVISIONS, each.metadata.name, each.metadata.namespace)

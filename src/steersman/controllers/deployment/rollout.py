"""Steps of a rollout from old ReplicaSets to the new one, scaling, and rollback.

Follows pkg/controller/deployment rolling.go, sync.go, rollback.go.
"""

from __future__ import annotations

from collections.abc import Mapping

from steersman.api.apps.v1 import Deployment, ReplicaSet
from steersman.client.client import Client
from steersman.client.events import Recorder, reference
from steersman.client.resources import DEPLOYMENTS, REPLICA_SETS
from steersman.controllers.deployment import annotation_values
from steersman.controllers.deployment.fence_posts import (
    active,
    by_creation,
    by_size,
    is_rolling,
    max_surge,
    max_unavailable,
    new_replicas,
    replicas_of,
)
from steersman.controllers.deployment.replica_sets import TEMPLATE_HASH, DeploymentState, SameTemplate
from steersman.controllers.workloads.copies import mutable_copy, mutable_template_copy


async def rolling_update(client: Client, recorder: Recorder, state: DeploymentState) -> bool:
    """Make one step of a rolling update: scale up if possible, else down. Return True if anything was scaled."""
    assert state.new is not None
    desired, has = replicas_of(state.deployment), replicas_of(state.new)
    if has != desired:
        size = desired if has > desired else new_replicas(state.deployment, state.all_sets, state.new)
        if await scale_to(client, recorder, state, {state.new.metadata.uid: size}):
            return True
    old = active(state.old)
    if any(each.metadata.generation > each.status.observed_generation for each in old):
        return False  # their status is from before the last scaling: by it, too many pods would be deleted
    if not old or _max_scale_down(state) <= 0:
        return False
    cleaned_up = await scale_to(client, recorder, state, _without_unhealthy(state))
    return await scale_to(client, recorder, state, _without_dispensable(state)) or cleaned_up


def _max_scale_down(state: DeploymentState) -> int:
    """Return the number of pods that may be deleted; new pods that are not available count as missing."""
    assert state.new is not None
    missing = replicas_of(state.new) - state.new.status.available_replicas
    return sum(map(replicas_of, state.all_sets)) - _min_available(state) - missing


def _min_available(state: DeploymentState) -> int:
    """Return the number of pods that must be available."""
    return replicas_of(state.deployment) - max_unavailable(state.deployment)


def _without_unhealthy(state: DeploymentState) -> dict[str, int]:
    """Return sizes of old ReplicaSets without their unavailable pods, as far as these may be deleted."""
    left, sizes = _max_scale_down(state), {}
    for each in by_creation(active(state.old)):
        unhealthy = max(replicas_of(each) - each.status.available_replicas, 0)
        gone = min(left, unhealthy)
        sizes[each.metadata.uid] = replicas_of(each) - gone
        left -= gone
    return sizes


def _without_dispensable(state: DeploymentState) -> dict[str, int]:
    """Return sizes of old ReplicaSets without available pods beyond the required number."""
    left, sizes = sum(each.status.available_replicas for each in state.all_sets) - _min_available(state), {}
    for each in by_creation(active(state.old)):
        gone = max(min(replicas_of(each), left), 0)
        sizes[each.metadata.uid] = replicas_of(each) - gone
        left -= gone
    return sizes


async def scale_to(
    client: Client, recorder: Recorder, state: DeploymentState, sizes: Mapping[str, int], *, annotate: bool = False
) -> bool:
    """Scale ReplicaSets to `sizes`, by uid. Return True if any size has changed.

    With `annotate` the annotations about the Deployment's size are updated in any case.
    """
    deployment, scaled = state.deployment, False
    written = annotation_values.replicas_annotations(deployment)
    by_uid = {each.metadata.uid: each for each in state.all_sets}
    for uid, size in sizes.items():
        each = by_uid[uid]
        own, before = each.metadata.annotations, replicas_of(each)
        is_annotated = not annotate or all(own.get(name) == value for name, value in written.items())
        if before == size and is_annotated:
            continue
        changed = mutable_copy(each)
        changed.spec.replicas = size
        changed.metadata.annotations = {**own, **written}
        state.replace(await client.update(REPLICA_SETS, changed))
        if size != before:
            scaled = True
            text = (
                f"Scaled {'up' if before < size else 'down'} replica set {each.metadata.name} from {before} to {size}"
            )
            recorder.event(reference(DEPLOYMENTS, deployment), "Normal", "ScalingReplicaSet", text)
    return scaled


async def scale(client: Client, recorder: Recorder, state: DeploymentState) -> None:
    """Scale a Deployment to its desired size, also if it is paused or in the middle of a rollout."""
    deployment, desired = state.deployment, replicas_of(state.deployment)
    running = active(state.all_sets)
    if len(running) <= 1:
        latest = running or ([state.new] if state.new else by_creation(state.old)[-1:])
        await scale_to(client, recorder, state, {each.metadata.uid: desired for each in latest})
    elif _is_saturated(deployment, state.new):
        await scale_to(client, recorder, state, {each.metadata.uid: 0 for each in active(state.old)})
    elif is_rolling(deployment):
        await scale_to(client, recorder, state, _shares(deployment, running), annotate=True)


def _is_saturated(deployment: Deployment, new: ReplicaSet | None) -> bool:
    if new is None:
        return False
    desired = replicas_of(deployment)
    return replicas_of(new) == annotation_values.desired_replicas(new) == new.status.available_replicas == desired


def _shares(deployment: Deployment, running: list[ReplicaSet]) -> dict[str, int]:
    """Return sizes of ReplicaSets, which share a change in proportion to their size; the largest gets the remainder."""
    desired = replicas_of(deployment)
    most = desired + max_surge(deployment) if desired else 0
    more = most - sum(map(replicas_of, running))
    if more:
        running = by_size(running, newer_first=more > 0)
    sizes, added = {}, 0
    for each in running:
        share = _share(deployment, each, most, more, added)
        sizes[each.metadata.uid] = replicas_of(each) + share
        added += share
    if more:
        first = running[0].metadata.uid
        sizes[first] = max(sizes[first] + more - added, 0)
    return sizes


def _share(deployment: Deployment, each: ReplicaSet, most: int, more: int, added: int) -> int:
    has = replicas_of(each)
    if more in (0, added):
        return 0
    if replicas_of(deployment) == 0:
        share = -has
    else:
        before = annotation_values.max_replicas(each) or deployment.status.replicas
        share = int(has * most / before + 0.5) - has if before else 0
    return min(share, more - added) if more > 0 else max(share, more - added)


async def roll_back(client: Client, recorder: Recorder, state: DeploymentState) -> None:
    """Set a Deployment's template to that of an older revision, as requested by the annotation of an older API."""
    deployment = mutable_copy(state.deployment)
    about = reference(DEPLOYMENTS, deployment)
    revision = annotation_values.rollback_to(deployment) or annotation_values.last_revision(state.all_sets)
    target = next((each for each in state.all_sets if annotation_values.revision_of(each) == revision), None)
    own = deployment.metadata.annotations
    rolled_back = False
    if not revision or target is None:
        text = "Unable to find the revision to rollback to." if revision else "Unable to find last revision."
        recorder.event(about, "Warning", "DeploymentRollbackRevisionNotFound", text)
    elif await SameTemplate()(deployment, target):
        text = f'The rollback revision contains the same template as current deployment "{deployment.metadata.name}"'
        recorder.event(about, "Warning", "DeploymentRollbackTemplateUnchanged", text)
    else:
        deployment.spec.template = mutable_template_copy(target.spec.template)
        deployment.spec.template.metadata.labels.pop(TEMPLATE_HASH, None)
        own = {
            **annotation_values.own_annotations(own),
            **annotation_values.inherited_annotations(target.metadata.annotations),
        }
        rolled_back = True
    deployment.metadata.annotations = {key: value for key, value in own.items() if key != annotation_values.ROLLBACK_TO}
    await client.update(DEPLOYMENTS, deployment)
    if rolled_back:
        text = f'Rolled back deployment "{deployment.metadata.name}" to revision {revision}'
        recorder.event(about, "Normal", "DeploymentRollback", text)

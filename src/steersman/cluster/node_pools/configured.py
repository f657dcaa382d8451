"""NodePools of the configured groups of nodes: the configuration is their initial state."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final

import msgspec

from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.resources import NODES
from steersman.cluster.configuration import NodeGroup
from steersman.cluster.node_pools.pool import MOST_NAME, NODE_POOLS, InvalidPool, NodePool, spec_of
from steersman.controllers.workloads.controller_ref import new_controller_ref
from steersman.machinery.codec.serializer import to_plain
from steersman.machinery.errors.status import StatusError
from steersman.machinery.validation.formats import is_dns1123_subdomain
from steersman.nodes.behaviour import PREFIX
from steersman.nodes.simulated_node import SimulatedNode

logger = logging.getLogger(__name__)

_CONFIGURED: Final = f"{PREFIX}configured"
"""Annotation of a pool with a digest of the group that it was made from."""
_REFUSED: Final = frozenset({400, 422})


async def create_pools(
    client: Client, groups: Iterable[NodeGroup], nodes: Sequence[SimulatedNode]
) -> list[SimulatedNode]:
    """Create the pools of groups that have none, and change those whose group has changed since.

    Return those of `nodes` that exist already or have to: a pool whose group has not changed may have been scaled.
    Raises StatusError, Unreachable.
    """
    pools: dict[str, NodePool] = {}
    kept: set[str] = set()
    for group in groups:
        if group.name in pools or len(group.name) > MOST_NAME or is_dns1123_subdomain(group.name):
            continue  # without a pool, its nodes have no group either
        found, is_kept = await _pool_of(client, group)
        if found is not None:
            pools[group.name] = found
            kept |= {group.name} if is_kept else set()
    existing = {each.metadata.name for each in (await client.list(NODES)).items} if kept else set()
    staying = [each for each in nodes if each.template.group not in kept or each.name in existing]
    templates = {
        each.template.group: replace(each.template, owner=new_controller_ref(NODE_POOLS, pools[each.template.group]))
        for each in staying
        if each.template.group in pools
    }
    for each in staying:
        each.template = templates.get(each.template.group, each.template)
    return staying


async def _pool_of(client: Client, group: NodeGroup) -> tuple[NodePool | None, bool]:
    """Return the pool of a group, and True if it was left as it is; no pool for a group that is too large for one."""
    spec = _spec(group)
    digest = sha256(msgspec.json.encode(spec, order="deterministic")).hexdigest()[:16]
    known = await client.find(NODE_POOLS, group.name)
    if known is not None and known.metadata.annotations.get(_CONFIGURED) == digest:
        return known, True
    made = known or NodePool(metadata=ObjectMeta(name=group.name))
    made.metadata.annotations[_CONFIGURED] = digest
    made.spec = spec
    try:
        spec_of(made)
        return await (client.create if known is None else client.update)(NODE_POOLS, made), False
    except InvalidPool as error:
        logger.warning("group %s of nodes gets no NodePool: %s", group.name, error)
    except StatusError as error:
        if error.code not in _REFUSED:
            raise
        logger.warning("group %s of nodes gets no NodePool: %s", group.name, error)
    return None, False


def _spec(group: NodeGroup) -> dict[str, Any]:
    status: dict[str, Any] = {"nodeInfo": {"architecture": group.architecture}}
    if group.capacity:
        status["capacity"] = {name: str(amount) for name, amount in group.capacity.items()}
    template: dict[str, Any] = {"status": status}
    if group.labels or group.annotations:
        template["metadata"] = {"labels": group.labels, "annotations": group.annotations}
    if group.taints:
        template["spec"] = {"taints": [to_plain(each) for each in group.taints]}
    return {"replicas": group.count, "template": template}

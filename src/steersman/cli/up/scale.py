"""`steersman scale`: changes the size of a running cluster through its API."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection, Iterable
from pathlib import Path
from typing import Final

import click

from steersman.api.core.v1 import Node
from steersman.api.meta.v1 import DeleteOptions, Preconditions
from steersman.cli.paths import cluster_data_dir
from steersman.cli.program import fail
from steersman.cli.up.commands import require_running
from steersman.client.client import Client
from steersman.client.errors import ignoring, is_not_found
from steersman.client.over_tls import TLSTransport
from steersman.client.resources import NODES, PODS
from steersman.client.transport import Unreachable
from steersman.cluster.configuration import MOST_NODES, NodeGroup
from steersman.cluster.node_groups import further_nodes, groups_in, nodes_of, surplus
from steersman.cluster.node_pools.pool import NODE_POOLS, PoolStatus, status_of
from steersman.machinery.errors.status import StatusError
from steersman.machinery.suggestions import did_you_mean
from steersman.webhooks.kubeconfig import KubeconfigError, load_kubeconfig

_AGAIN: Final = 0.05
"""Seconds between two looks at a pool that is scaled."""
_PATIENCE: Final = 10.0
"""Seconds without progress after which a pool is no longer waited for."""
_USUAL: Final = NodeGroup().name
"""Group of a cluster without nodes."""


class UnknownGroup(ValueError):
    """The cluster does not have the group, or several and none was chosen."""


@click.group()
def scale() -> None:
    """Change the size of a running cluster."""


@scale.command("nodes")
@click.argument("total", type=click.IntRange(0, MOST_NODES))
@click.option("--group", metavar="name", default="", help="group of nodes  [default: the only one]", show_default=False)
@cluster_data_dir
def scale_nodes(total: int, group: str, data_dir: Path) -> None:
    """Add or remove nodes, so that a group has TOTAL nodes.

    A group is a NodePool, whose template added nodes follow. Empty nodes are removed first, then those that were made
    last.
    """
    found = require_running(data_dir)
    try:
        click.echo(asyncio.run(_scale(data_dir / "admin.kubeconfig", group, total)))
    except UnknownGroup as error:
        fail(str(error))
    except (KubeconfigError, StatusError, Unreachable) as error:
        fail(f"process {found.pid}: {error}")


async def _scale(kubeconfig: Path, group: str, total: int) -> str:
    client = Client(TLSTransport(load_kubeconfig(kubeconfig)), "steersman")
    try:
        return await scale_group(client, group, total)
    finally:
        await client.aclose()


async def scale_group(client: Client, group: str, total: int) -> str:
    """Change the number of nodes of a group, and return a line about the change; "" is the only group.

    A group that is a NodePool is scaled by it, and waited for.

    Raises UnknownGroup, StatusError, Unreachable. After an error some nodes may have been added or removed.
    """
    nodes = (await client.list(NODES)).items
    pools = await _pools(client)
    group = _known_group(group, {*groups_in(nodes), *pools})
    there = nodes_of(group, nodes)
    if group in pools:
        return await _scale_pool(client, group, total, before=len(there))
    if total >= len(there):
        added = further_nodes(group, nodes, there[0] if there else None, total - len(there))
        await _all([_create(client, each) for each in added])
        return f"group {group}: {total} nodes, {len(added)} added"
    removed = surplus(there, (await client.list(PODS)).items, len(there) - total)
    await _all([_delete(client, each) for each in removed])
    return f"group {group}: {total} nodes, {len(removed)} removed"


async def _pools(client: Client) -> frozenset[str]:
    """Return the names of all NodePools; none for a server without such objects."""
    with ignoring(is_not_found):
        return frozenset([each.metadata.name for each in (await client.list(NODE_POOLS)).items])
    return frozenset()


async def _scale_pool(client: Client, name: str, total: int, *, before: int) -> str:
    """Change the size of a pool, and return a line about it once its nodes exist or it makes no progress any more."""
    changed = await client.patch(NODE_POOLS, name, "", {"spec": {"replicas": total}})
    status, waited = PoolStatus(), 0.0
    while waited < _PATIENCE:
        found = status_of(await client.get(NODE_POOLS, name))
        current = found.observed_generation >= changed.metadata.generation
        waited = waited + _AGAIN if found.replicas == status.replicas else 0.0
        status = found
        if current and found.replicas == found.desired_replicas:
            break
        await asyncio.sleep(_AGAIN)
    there = status.replicas
    text = (
        f"group {name}: {there} nodes, {f'{before - there} removed' if there < before else f'{there - before} added'}"
    )
    why = next((each.message for each in status.conditions if each.reason != "NodesNotReady"), "")
    return f"{text}; {why}" if there != total and why else text


def _known_group(group: str, groups: Collection[str]) -> str:
    """Return the group, or the only one for "". Raises UnknownGroup."""
    known = sorted(groups) or [_USUAL]
    if not group and len(known) > 1:
        raise UnknownGroup(f"--group is needed, as there are several: {', '.join(known)}")
    if group and group not in known:
        raise UnknownGroup(f"no node is in group {group}{did_you_mean(group, known)}; groups: {', '.join(known)}")
    return group or known[0]


async def _create(client: Client, node: Node) -> None:
    await client.create(NODES, node)


async def _delete(client: Client, node: Node) -> None:
    """Delete a node, unless it is gone already or another one has its name."""
    metadata = node.metadata
    with ignoring(is_not_found):
        await client.delete(NODES, metadata.name, "", DeleteOptions(preconditions=Preconditions(uid=metadata.uid)))


async def _all(requests: Iterable[Awaitable[object]]) -> None:
    """Wait for the responses to all requests, then raise the first error; the client limits those under way."""
    for result in await asyncio.gather(*requests, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result

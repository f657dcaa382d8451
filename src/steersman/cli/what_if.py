"""`steersman what-if`: where the pods of manifests would go, and what they would push out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from steersman.cli.cluster_client import Target, cluster_options
from steersman.cli.paths import AbsolutePath
from steersman.cli.placement_tables import table
from steersman.cli.program import fail
from steersman.cli.terminal_text import printable, wrapped
from steersman.cli.why import default_namespace, in_world

if TYPE_CHECKING:
    from steersman.explain.what_if.plan import Plan, PlannedPod
    from steersman.explain.world import World

_MOST_NODES: Final = 8
_MOST_NAMED: Final = 5


@click.command("what-if")
@click.option(
    "-f",
    "--filename",
    "file",
    type=AbsolutePath(),
    required=True,
    metavar="path",
    help="file or folder of manifests (YAML or JSON)",
)
@click.option(
    "-n", "--namespace", default="", show_default=False, metavar="string", help="namespace of objects that name none"
)
@click.option("-o", "--output", type=click.Choice(["text", "wide", "json"]), default="text", help="form of the output")
@click.option("--dump", type=AbsolutePath(), metavar="path", help="file or folder of objects in place of a cluster")
@cluster_options
def what_if(
    file: Path,
    namespace: str,
    output: str,
    dump: Path | None,
    kubeconfig: Path | None,
    context: str,
    data_dir: Path | None,
) -> None:
    """Show where the pods of manifests would go, without writing anything.

    The scheduler decides them one after the other on a copy of the cluster: pods, and those of Deployments, ReplicaSets,
    StatefulSets, DaemonSets and Jobs. Nodes, claims and classes in the manifests count as if they existed.
    """
    from steersman.dumps.errors import DumpError
    from steersman.explain.dump import load_dump
    from steersman.explain.what_if.plan import encoded, plan
    from steersman.explain.what_if.pods import TooManyPods

    target = Target(kubeconfig, context, data_dir)

    async def work(world: World) -> Plan:
        return await plan(world, load_dump(file), namespace or default_namespace(dump, target))

    try:
        found = in_world(target, dump, work)
    except (TooManyPods, DumpError) as error:
        fail(printable(error))
    if output == "json":
        click.echo(encoded(found).decode())
        return
    for line in _lines(found, wide=output == "wide"):
        click.echo(line)


def _lines(found: Plan, *, wide: bool) -> Iterator[str]:
    if not found.pods:
        yield "the manifests have no pods"
    sources: dict[str, list[PlannedPod]] = {}
    for each in found.pods:
        place = f" in {each.source.namespace}" if each.source.namespace else ""
        sources.setdefault(f"{each.source}{place}", []).append(each)
    for name, pods in sources.items():
        yield from _lines_of(name, pods)
    if wide and found.pods:
        yield ""
        rows = [(each.pod.namespace, each.pod.name, each.node or "-", _out(each) or each.reason) for each in found.pods]
        yield from table(("NAMESPACE", "POD", "NODE", "PUSHES OUT, OR REASON"), rows)
    if found.replaced:
        yield f"in place of {len(found.replaced)} pods that these workloads have now"
    if found.unread:
        yield f"not readable, taken as empty: {printable(', '.join(found.unread))}"


def _lines_of(name: str, pods: list[PlannedPod]) -> Iterator[str]:
    placed = [each for each in pods if each.node]
    nodes = Counter(each.node for each in placed).most_common()
    text = ", ".join(f"{node} ({count})" if len(pods) > 1 else node for node, count in nodes[:_MOST_NODES])
    more = f" and {len(nodes) - _MOST_NODES} more nodes" if len(nodes) > _MOST_NODES else ""
    yield from wrapped(printable(f"{name}: {len(placed)} of {len(pods)} placed: {text or 'none'}{more}"), "", "  ")
    victims = [each for pod in placed for each in pod.pushes_out]
    if victims:
        names = ", ".join(f"{each.namespace}/{each.name}" for each in victims[:_MOST_NAMED])
        etc = f" and {len(victims) - _MOST_NAMED} more" if len(victims) > _MOST_NAMED else ""
        yield from wrapped(printable(f"pushes out {names}{etc}"), "  ", "    ")
    for reason, count in Counter(each.reason for each in pods if not each.node).most_common(_MOST_NAMED):
        yield from wrapped(printable(f"{count} stay pending: {reason}"), "  ", "    ")


def _out(each: PlannedPod) -> str:
    return ", ".join(f"{pod.namespace}/{pod.name}" for pod in each.pushes_out)

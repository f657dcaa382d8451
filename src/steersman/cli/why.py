"""`steersman why`: explains the state of an object, a right, or lists what is unhealthy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from steersman.cli.cluster_client import Target, cluster_options, endpoint_of, run_with_client
from steersman.cli.paths import AbsolutePath
from steersman.cli.program import fail
from steersman.cli.terminal_text import printable

if TYPE_CHECKING:
    from steersman.client.client import Client
    from steersman.explain.finding import Explanation
    from steersman.explain.world import World

R = TypeVar("R")


@click.command()
@click.argument("what", nargs=-1, metavar="[KIND/NAME | KIND NAME | can-i VERB RESOURCE [NAME]]")
@click.option("-n", "--namespace", default="", show_default=False, metavar="string", help="namespace of the object")
@click.option("-o", "--output", type=click.Choice(["text", "wide", "json"]), default="text", help="form of the output")
@click.option("--dump", type=AbsolutePath(), metavar="path", help="file or folder of objects in place of a cluster")
@click.option("--as", "user", default="", show_default=False, metavar="string", help="can-i: another user")
@click.option("--as-group", "groups", multiple=True, metavar="string", help="can-i: a group of that user")
@cluster_options
def why(
    what: tuple[str, ...],
    namespace: str,
    output: str,
    dump: Path | None,
    user: str,
    groups: tuple[str, ...],
    kubeconfig: Path | None,
    context: str,
    data_dir: Path | None,
) -> None:
    """Explain why an object is in its state, with the evidence and with changes that help.

    Without an object it lists what is unhealthy in the cluster, or in the namespace of -n. `can-i VERB RESOURCE [NAME]`
    explains why a user may or may not send a request, and which role would allow it.
    """
    target = Target(kubeconfig, context, data_dir)
    if not what:
        _print_overview(target, dump, namespace, output)
        return
    if what[0] == "can-i":
        work = _access_work(what[1:], namespace or default_namespace(dump, target), user, groups)
    elif user or groups:
        raise click.UsageError("--as and --as-group are for can-i", click.get_current_context())
    else:
        kind, name = _kind_and_name(what)

        async def work(world: World) -> Explanation:
            return await _explain(world, kind, name, namespace or default_namespace(dump, target))

    found = in_world(target, dump, work)
    if output == "json":
        from steersman.explain.finding import encoded

        click.echo(encoded(found))
        return
    from steersman.cli.explained import explanation_lines

    for line in explanation_lines(found, wide=output == "wide"):
        click.echo(line)


def _kind_and_name(what: tuple[str, ...]) -> tuple[str, str]:
    """Return kind and name from the arguments `KIND/NAME` or `KIND NAME`. Raises UsageError."""
    if len(what) == 1 and what[0].count("/") == 1:
        kind, _, name = what[0].partition("/")
        if kind and name:
            return kind, name
    if len(what) == 2 and "/" not in what[0]:
        return what[0], what[1]
    raise click.UsageError("give one object as KIND/NAME or KIND NAME", click.get_current_context())


def _access_work(
    what: tuple[str, ...], namespace: str, user: str, groups: tuple[str, ...]
) -> Callable[[World], Coroutine[Any, Any, Explanation]]:
    """Return the explanation of `VERB RESOURCE [NAME]` as a function of the world. Raises UsageError."""
    if not 2 <= len(what) <= 3:
        raise click.UsageError("give the request as can-i VERB RESOURCE [NAME]", click.get_current_context())
    if groups and not user:
        raise click.UsageError("--as-group needs --as", click.get_current_context())
    from steersman.explain.can_i import AccessQuery, explain_access

    query = AccessQuery(what[0], what[1], what[2] if len(what) == 3 else "", namespace, user, groups)
    return lambda world: explain_access(world, query)


def _print_overview(target: Target, dump: Path | None, namespace: str, output: str) -> None:
    from steersman.explain.overview import overview

    found = in_world(target, dump, lambda world: overview(world, namespace))
    if output == "json":
        from steersman.explain.finding import encoded

        click.echo(encoded(found))
        return
    from steersman.cli.explained import overview_lines

    for line in overview_lines(found, wide=output == "wide"):
        click.echo(line)


def default_namespace(dump: Path | None, target: Target) -> str:
    """Return the namespace of objects that name none: that of the context."""
    return "default" if dump is not None else endpoint_of(target).namespace or "default"


async def _explain(world: World, kind: str, name: str, namespace: str) -> Explanation:
    """Return the explanation of an object. Raises UnknownKind, NotFound, Unreadable, StatusError, Unreachable."""
    from steersman.explain.explainers import explain
    from steersman.explain.kind_names import find_resource

    resource = find_resource(kind, (await world.resources()).served).resource
    return await explain(world, resource, name, namespace)


def in_world(target: Target, dump: Path | None, work: Callable[[World], Coroutine[Any, Any, R]]) -> R:
    """Return the result of `work` on a dump, or on the cluster of `target`; on an error print a line, exit with 1."""
    from steersman.dumps.errors import DumpError
    from steersman.explain.dump import load_dump
    from steersman.explain.explainers import NotFound
    from steersman.explain.kind_names import UnknownKind
    from steersman.explain.world import LiveWorld, Unreadable

    async def live(client: Client) -> R:
        return await work(LiveWorld(client))

    try:
        if dump is not None:
            return asyncio.run(work(load_dump(dump)))
        return run_with_client(target, live)
    except (DumpError, NotFound, UnknownKind, Unreadable) as error:
        fail(printable(error.args[0]))

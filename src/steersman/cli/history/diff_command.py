"""`steersman diff`: the differences of a cluster between two points in history."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from steersman.cli.cluster_client import Target, cluster_options
from steersman.cli.history.command import run_on_history
from steersman.cli.history.points import POINT
from steersman.cli.terminal_text import coloured, printable
from steersman.cli.up.screen import GREEN, RED, YELLOW

if TYPE_CHECKING:
    from steersman.cli.history.cluster_diff import ObjectChange
    from steersman.client.client import Client

_MARKS: Final = {"ADDED": ("+", GREEN), "REMOVED": ("-", RED), "CHANGED": ("~", YELLOW)}
_SHOWN_CHANGES: Final = 10


@click.command()
@click.argument("kinds", nargs=-1, metavar="[KIND...]")
@click.option("--from", "begin", type=POINT, required=True, metavar="point", help="revision, time, or age such as 10m")
@click.option("--to", "end", type=POINT, default="now", metavar="point", help="revision, time, age or now")
@click.option("-n", "--namespace", default="", show_default=False, metavar="string", help="only this namespace")
@click.option("--all", "noise", is_flag=True, help="also events, leases and heartbeats")
@click.option("--show-secrets", is_flag=True, help="show values of Secrets")
@click.option("-o", "--output", type=click.Choice(["text", "wide", "json"]), default="text", help="form of the output")
@cluster_options
def diff(
    kinds: tuple[str, ...],
    begin: str,
    end: str,
    namespace: str,
    noise: bool,
    show_secrets: bool,
    output: str,
    kubeconfig: Path | None,
    context: str,
    data_dir: Path | None,
) -> None:
    """Compare all objects of a cluster, or of some kinds, at two points in history."""

    async def work(client: Client) -> tuple[tuple[int, int], list[ObjectChange], list[str]]:
        from steersman.cli.history.cluster_diff import chosen, compare
        from steersman.cli.history.sources import source_of
        from steersman.client.discovery import preferred_resources

        source, _ = await source_of(client)
        revisions = (await source.revision(begin), await source.revision(end))
        resources = chosen((await preferred_resources(client)).served, kinds)
        unread: list[str] = []
        found = [
            each
            async for each in compare(
                client,
                resources,
                revisions,
                namespace=namespace,
                noise=noise,
                secrets=show_secrets,
                unread=unread,
            )
        ]
        return revisions, found, unread

    revisions, found, unread = run_on_history(Target(kubeconfig, context, data_dir), work)
    for each in unread:
        click.echo(f"not compared: {printable(each)}", err=True)
    if output == "json":
        import msgspec

        whole = {"from": str(revisions[0]), "to": str(revisions[1]), "objects": found}
        click.echo(msgspec.json.format(msgspec.json.encode(whole)).decode())
        return
    counts = [sum(each.type == kind for each in found) for kind in _MARKS]
    click.echo(
        f"revision {revisions[0]} to {revisions[1]}: {counts[0]} added, {counts[1]} removed, {counts[2]} changed"
    )
    for each in found:
        _show(each, wide=output == "wide")


def _show(found: ObjectChange, *, wide: bool) -> None:
    from steersman.cli.history.lines import change_line

    mark, colour = _MARKS[found.type]
    place = f"{found.namespace}/" if found.namespace else ""
    click.echo(coloured(f"{mark} {printable(found.resource)} {printable(place + found.name)}", colour))
    shown = found.changes if wide else found.changes[:_SHOWN_CHANGES]
    for each in shown:
        click.echo(f"    {change_line(each)}")
    if left := len(found.changes) - len(shown) + found.more:
        click.echo(f"    and {left} more{'' if wide else ' (-o wide)'}")

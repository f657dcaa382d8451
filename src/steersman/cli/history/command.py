"""`steersman history`: the writes of an object or of all objects of a kind, and objects at a past revision."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from steersman.cli.cluster_client import Target, cluster_options, endpoint_of, run_with_client
from steersman.cli.history.points import POINT
from steersman.cli.program import fail
from steersman.cli.terminal_text import printable

if TYPE_CHECKING:
    from steersman.cli.history.sources import Entry
    from steersman.client.client import Client


@click.command()
@click.argument("what", nargs=-1, metavar="KIND[/NAME] [NAME]")
@click.option("-n", "--namespace", default="", show_default=False, metavar="string", help="namespace of the objects")
@click.option("-A", "--all-namespaces", is_flag=True, help="objects of all namespaces")
@click.option("--at", type=POINT, metavar="point", help="print the object at a revision, time or age such as 10m")
@click.option("--diff", is_flag=True, help="print a unified diff for each write")
@click.option("--limit", type=click.IntRange(1, 100_000), default=100, metavar="int", help="most writes to show")
@click.option("--show-secrets", is_flag=True, help="show values of Secrets")
@click.option(
    "-o", "--output", type=click.Choice(["text", "wide", "yaml", "json"]), default="text", help="form of the output"
)
@cluster_options
def history(
    what: tuple[str, ...],
    namespace: str,
    all_namespaces: bool,
    at: str | None,
    diff: bool,
    limit: int,
    show_secrets: bool,
    output: str,
    kubeconfig: Path | None,
    context: str,
    data_dir: Path | None,
) -> None:
    """Show the writes of an object or of a kind's objects, the newest last: when, by whom, and what they changed."""
    kind, name = _kind_and_name(what)
    if all_namespaces and name:
        raise click.UsageError("-A is for all objects of a kind", click.get_current_context())
    if at is not None and not name:
        raise click.UsageError("--at needs an object; `steersman diff` compares clusters", click.get_current_context())
    target = Target(kubeconfig, context, data_dir)
    namespace = "" if all_namespaces else namespace or endpoint_of(target).namespace or "default"

    async def work(client: Client) -> list[str | bytes]:
        from steersman.cli.history.sources import source_of
        from steersman.client.discovery import preferred_resources
        from steersman.explain.kind_names import find_resource

        resource = find_resource(kind, (await preferred_resources(client)).served).resource
        source, note = await source_of(client)
        if note:
            click.echo(f"note: {note}", err=True)
        if at is not None:
            data = await source.object_at(resource, namespace, name, at, secrets=show_secrets)
            return [_document(data, output)]
        objects = diff or output in ("yaml", "json")
        entries = await source.entries(resource, namespace, name, limit, objects=objects, secrets=show_secrets)
        return list(_shown(entries[::-1], output, diff=diff, named=not name))

    for line in run_on_history(target, work):
        click.echo(line)


def _kind_and_name(what: tuple[str, ...]) -> tuple[str, str]:
    """Return kind and name, "" for all objects of the kind. Raises UsageError."""
    if len(what) == 1:
        kind, slash, name = what[0].partition("/")
        if kind and bool(slash) == bool(name) and "/" not in name:
            return kind, name
    if len(what) == 2 and "/" not in what[0]:
        return what[0], what[1]
    raise click.UsageError("give a kind, or one object as KIND/NAME", click.get_current_context())


def run_on_history(target: Target, work: Any) -> Any:
    """Return the result of `work` on the chosen cluster; on an error print a line and exit with 1."""
    from steersman.cli.history.sources import NoHistory
    from steersman.explain.kind_names import UnknownKind

    try:
        return run_with_client(target, work)
    except (NoHistory, UnknownKind) as error:
        fail(printable(error.args[0]))


def _document(data: bytes, output: str) -> bytes:
    """Return JSON as text of the output, still encoded: it may have hundreds of MiB."""
    from steersman.machinery.codec.serializer import pretty
    from steersman.machinery.codec.yaml import from_json

    return (pretty(data) if output == "json" else from_json(data)).rstrip(b"\n")


def _shown(entries: list[Entry], output: str, *, diff: bool, named: bool) -> Iterator[str | bytes]:
    from steersman.cli.history.lines import table
    from steersman.machinery.codec.serializer import encode_in_order

    if output in ("yaml", "json"):
        yield _document(encode_in_order({"items": entries}), output)
    elif diff:
        yield from _diffs(entries)
    else:
        yield from table(entries, wide=output == "wide", named=named)


def _diffs(entries: list[Entry]) -> Iterator[str]:
    """Yield a heading and a unified diff for each write, oldest first."""
    from steersman.cli.history.lines import object_diff, verb_of

    before: dict[tuple[str, str], tuple[dict[str, Any] | None, str]] = {}
    for each in entries:
        key = (each.get("namespace", ""), each["name"])
        known = key in before
        old, revision = before.get(key, (None, "0"))
        new = each.get("object")
        origin = [each.get("time", ""), verb_of(each), each.get("user", "")]
        yield printable(f"revision {each['revision']} {'/'.join(filter(None, key))} {' '.join(filter(None, origin))}")
        if known or each["type"] == "ADDED":
            yield from object_diff(old, new, (f"revision {revision}", f"revision {each['revision']}"))
        before[key] = (new, each["revision"])

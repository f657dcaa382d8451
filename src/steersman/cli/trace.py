"""`steersman trace`: requests as they are answered, and the steps of one."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

import click

from steersman.cli.cluster_client import Target, cluster_options, run_with_client
from steersman.machinery.go.strings import to_lower

if TYPE_CHECKING:
    from pathlib import Path

    from steersman.client.client import Client

_PATH: Final = "/debug/requests"
_FILTERS: Final[tuple[tuple[str, str, str], ...]] = (
    ("--user", "user", "requests of this user"),
    ("--verb", "verb", "requests with this verb, or one of create,update,..."),
    ("--resource", "resource", "requests for this resource, such as pods or pods/status"),
    ("--user-agent", "userAgent", "requests of clients with this part in their user agent"),
    ("--code", "code", "answers with this code, such as 404 or 4xx"),
    ("--slow", "slow", "requests that took at least this long, such as 50ms"),
)
"""Options that filter by a text: the option, its parameter of the path, and its help."""


def _filters(command: Callable[..., Any]) -> Callable[..., Any]:
    for name, parameter, text in reversed(_FILTERS):
        command = click.option(name, _argument(parameter), default="", show_default=False, metavar="string", help=text)(
            command
        )
    return command


def _argument(parameter: str) -> str:
    """Return the name of the command's argument for a filter."""
    return to_lower(parameter)


@click.command()
@click.argument("request_id", default="", metavar="[ID]")
@click.option("-n", "--namespace", default="", show_default=False, metavar="string", help="requests in this namespace")
@_filters
@click.option("--failed", is_flag=True, help="requests that failed (codes from 400 on)")
@click.option("--recent", is_flag=True, help="print the requests that are kept, and end")
@click.option("-o", "--output", type=click.Choice(["text", "wide", "json"]), default="text", help="form of the output")
@cluster_options
def trace(
    request_id: str,
    namespace: str,
    failed: bool,
    recent: bool,
    output: str,
    kubeconfig: Path | None,
    context: str,
    data_dir: Path | None,
    **filters: str,
) -> None:
    """Print the requests of a server as they are answered, until it is interrupted.

    With an ID, or the end of one, print the steps of that request. Requests are traced while somebody reads them, and
    for a minute after.
    """
    given = {parameter: filters[_argument(parameter)] for _, parameter, _ in _FILTERS}
    query = {parameter: text for parameter, text in given.items() if text}
    query |= {"namespace": namespace} if namespace else {}
    query |= {"failed": "true"} if failed else {}
    target = Target(kubeconfig, context, data_dir)
    if request_id:
        _print_one(run_with_client(target, lambda client: _one(client, request_id)), output)
        return
    if recent:
        _print_all(run_with_client(target, lambda client: _kept(client, query)), output)
        return
    with suppress(KeyboardInterrupt):
        run_with_client(target, lambda client: _follow(client, query, output))


async def _one(client: Client, request_id: str) -> Any:
    from steersman.cli.traced import checked_steps

    return checked_steps(await client.get_plain(f"{_PATH}/{quote(request_id, safe='')}"))


async def _kept(client: Client, query: Mapping[str, str]) -> Any:
    from steersman.cli.traced import checked_requests

    return checked_requests(await client.get_plain(f"{_PATH}?{urlencode(query)}"))


async def _follow(client: Client, query: Mapping[str, str], output: str) -> None:
    """Print requests until the server ends the stream."""
    from steersman.cli.traced import checked_request

    with suppress(asyncio.CancelledError):
        async with client.plain_lines(f"{_PATH}?{urlencode({**query, 'watch': 'true'})}") as lines:
            async for line in lines:
                try:
                    _print_all([checked_request(line)], output)
                except BrokenPipeError:  # the reader of the output has seen enough
                    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                    return
        click.echo("the server has ended the stream", err=True)


def _print_all(found: Iterable[Mapping[str, Any]], output: str) -> None:
    from steersman.cli.traced import request_line

    for each in found:
        click.echo(json.dumps(each) if output == "json" else request_line(each, wide=output == "wide"))
    sys.stdout.flush()


def _print_one(found: Mapping[str, Any], output: str) -> None:
    from steersman.cli.traced import step_lines

    if output == "json":
        click.echo(json.dumps(found, indent=2))
        return
    for line in step_lines(found, wide=output == "wide"):
        click.echo(line)

"""`steersman report`: what the clients of a server have requested, and what of it was in vain."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import click

from steersman.cli.cluster_client import Target, cluster_options, run_with_client
from steersman.cli.paths import AbsolutePath
from steersman.cli.program import INTERRUPTED, fail
from steersman.cli.terminal_text import printable
from steersman.cli.termination import Terminated, cancelled_by_sigterm

if TYPE_CHECKING:
    from steersman.client.client import Client
    from steersman.report.report import Report
    from steersman.report.tally import ClientCounts, Tally

_STREAM: Final = "/debug/requests?watch=true&detail=true"
_KEPT: Final = "/debug/requests"
_MOST_ROWS: Final = 15
"""Rows of requests that are shown for each client."""
_MOST_OBSERVATIONS: Final = 100
"""Observations that are shown."""
_LAST: Final = 0.5
"""Seconds after the end of a command in which its last requests are told."""
_SIGNALLED: Final = 128
"""Exit code of a command that a signal has ended, without the number of the signal."""


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option(
    "--user-agent", default="", show_default=False, metavar="string", help="clients with this in their user agent"
)
@click.option("--recent", is_flag=True, help="report on the requests that are kept, and end")
@click.option(
    "--tests", is_flag=True, help="report on the servers that COMMAND starts, of envtest and of pytest's fixtures"
)
@click.option(
    "--read", type=AbsolutePath(), metavar="path", help="report on the requests in a folder that STEERSMAN_REPORT named"
)
@click.option("--role", type=AbsolutePath(), metavar="path", help="file with a role: what it grants that was not used")
@click.option("-o", "--output", type=click.Choice(["text", "json", "role"]), default="text", help="form of the output")
@cluster_options
def report(
    command: tuple[str, ...],
    user_agent: str,
    recent: bool,
    tests: bool,
    read: Path | None,
    role: Path | None,
    output: str,
    kubeconfig: Path | None,
    context: str,
    data_dir: Path | None,
) -> None:
    """Report on the requests of a server's clients until it is interrupted, or while COMMAND runs.

    For each client: requests by verb and resource, writes that changed nothing, objects that are written again and
    again, fields that several change in turns, lists without limit, informers that start again, conflicts, warnings and
    errors; and with `-o role` the least ClusterRole for what was requested.
    """
    from steersman.report.report import Report
    from steersman.report.tally import Tally

    if sum((recent, tests, read is not None)) > 1:
        raise click.UsageError("--recent, --tests and --read exclude each other")
    if tests and not command:
        raise click.UsageError("--tests needs a COMMAND, which starts the servers")
    tally = Tally()
    rules = None if role is None else _rules(role)
    target = Target(kubeconfig, context, data_dir)
    status = INTERRUPTED if command else 0
    with suppress(KeyboardInterrupt):
        if tests:
            status = _of_tests(command, tally)
        elif read is not None:
            _add_recorded(read, tally)
        elif recent:
            run_with_client(target, lambda client: _count_kept(client, tally))
        else:
            status = run_with_client(target, lambda client: _count(client, tally, command))
    found = Report(tally, user_agent)
    if output == "json":
        from steersman.report.document import document

        click.echo(json.dumps(document(found), indent=2))
    elif output == "role":
        from steersman.machinery.codec.yaml import from_json

        click.echo(from_json(json.dumps(found.role()).encode()), nl=False)
    else:
        for line in _lines(found, rules, recent=recent):
            click.echo(line)
    sys.exit(status)


def _rules(path: Path) -> list[Any]:
    """Return the rules of the roles in a file."""
    from steersman.cli.role_files import RoleFileError, rules_of

    try:
        return rules_of(path)
    except RoleFileError as error:
        fail(printable(error))


def _of_tests(command: tuple[str, ...], tally: Tally) -> int:
    """Run a command whose tests start servers, count the requests of all of these servers, also after an interrupt.

    Return the command's exit code. Raises KeyboardInterrupt.
    """
    from steersman.report.recording import SUFFIX, VARIABLE

    with TemporaryDirectory(prefix="steersman-report-") as folder:
        try:
            status = asyncio.run(cancelled_by_sigterm(_exit_code(command, {**os.environ, VARIABLE: folder})))
        except OSError as error:
            fail(f"{command[0]}: {error.strerror or error}")
        except Terminated:
            fail("terminated")
        finally:
            if has_servers := any(Path(folder).glob(f"*{SUFFIX}")):
                _add_recorded(Path(folder), tally)
        if not has_servers:
            fail("COMMAND has started no server of `steersman envtest` or of pytest's fixtures")
        return status


async def _exit_code(command: tuple[str, ...], environment: Mapping[str, str] | None = None) -> int:
    """Run a command and return its exit code, as shells do for one that a signal has ended.

    If this is cancelled, the command is asked to end, and has ended afterwards. Raises OSError.
    """
    process = await asyncio.create_subprocess_exec(*command, env=environment)
    try:
        code = await process.wait()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
        raise
    return code if code >= 0 else _SIGNALLED - code


def _add_recorded(path: Path, tally: Tally) -> None:
    """Count recorded requests."""
    from steersman.report.recording import RecordingError, recorded_requests

    try:
        recorded_requests(path, tally)
    except RecordingError as error:
        fail(printable(error))
    except OSError as error:
        fail(f"{path}: {error.strerror or error}")


async def _count_kept(client: Client, tally: Tally) -> None:
    from steersman.cli.traced import checked_requests

    for each in checked_requests(await client.get_plain(_KEPT)):
        tally.add(each)


async def _count(client: Client, tally: Tally, command: tuple[str, ...]) -> int:
    """Count requests until a command ends, or without one until the server ends the stream. Return its exit code."""
    async with client.plain_lines(_STREAM) as lines:
        if not command:
            click.echo("counting requests until you interrupt it", err=True)
            await _count_lines(lines, tally)
            return 0
        counting = asyncio.create_task(_count_lines(lines, tally))
        try:
            status = await _exit_code(command)
        except OSError as error:
            counting.cancel()
            fail(f"{command[0]}: {error.strerror or error}")
        await asyncio.sleep(_LAST)
        counting.cancel()
        with suppress(asyncio.CancelledError):
            await counting
        return status


async def _count_lines(lines: AsyncIterator[Any], tally: Tally) -> None:
    from steersman.cli.traced import checked_request

    async for line in lines:
        tally.add(checked_request(line))


def _lines(found: Report, rules: list[Any] | None, *, recent: bool) -> Iterator[str]:
    if not found.clients:
        kept = "; they are kept while somebody reads them, and for a minute after" if recent else ""
        yield f"no requests of clients{kept}"
    for client in found.clients:
        yield from _client_lines(found, client)
    observed = found.observations
    if observed:
        yield "worth a look"
        for each in observed[:_MOST_OBSERVATIONS]:
            yield f"  {printable(each.client or '-')}: {printable(each.message)}"
        if len(observed) > _MOST_OBSERVATIONS:
            yield f"  and {len(observed) - _MOST_OBSERVATIONS} more (-o json)"
    if rules is not None:
        unused = found.unused(rules)
        yield f"granted, and not used: {printable(', '.join(unused) or 'nothing')}"
    if found.dropped:
        yield f"{found.dropped} requests were not told, as there were too many at once"


def _client_lines(found: Report, client: ClientCounts) -> Iterator[str]:
    from steersman.cli.placement_tables import table
    from steersman.machinery.identity.schema import GroupResource

    failed = sum(client.failed.values())
    name = f"{printable(client.user_agent or '-')} ({printable(client.user or 'anonymous')})"
    yield f"{name}: {client.total} request{'' if client.total == 1 else 's'}, {failed} failed"
    if client.has_watched:
        yield f"  {client.write_count} writes, for {found.changes(client)} changes by others to what it watches"
    rows = []
    for (group, resource, verb), count in client.requests.most_common(_MOST_ROWS):
        full = str(GroupResource(group, resource))
        rows.append((printable(verb), printable(full), str(count), str(client.failed[group, resource, verb] or "")))
    for line in table(("VERB", "RESOURCE", "REQUESTS", "FAILED"), rows):
        yield f"  {line}"
    if len(client.requests) > _MOST_ROWS:
        yield f"  and {len(client.requests) - _MOST_ROWS} more kinds of requests (-o json)"
    yield ""

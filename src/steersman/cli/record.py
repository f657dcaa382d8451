"""`steersman record`: follows the changes of a live cluster into a file."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from steersman.cli.cluster_client import Target, cluster_options, run_with_client
from steersman.cli.paths import OutputFile
from steersman.cli.program import fail
from steersman.cli.terminal_text import printable

if TYPE_CHECKING:
    from steersman.client.client import Client

_MIB: Final = 1 << 20


@click.command()
@click.option("-o", "--output", required=True, type=OutputFile(), metavar="file", help="recording, new or earlier")
@click.option("--include-secrets", is_flag=True, help="with the values of Secrets, which are left out otherwise")
@click.option(
    "--max-size", type=click.IntRange(1, 8192), default=1024, metavar="MiB", help="size of the file at which it ends"
)
@click.option(
    "--for", "duration", default="", show_default=False, metavar="duration", help="time to record, such as 24h"
)
@cluster_options
def record(
    output: Path,
    include_secrets: bool,
    max_size: int,
    duration: str,
    kubeconfig: Path | None,
    context: str,
    data_dir: Path | None,
) -> None:
    """Follow the changes of all objects of a live cluster into a file, until it is interrupted.

    It only sends GET requests. Each change is in the file at once. `steersman replay` plays it.
    """
    from steersman.dumps.errors import DumpError
    from steersman.dumps.recording import Full, Recorder
    from steersman.dumps.recordings import open_to_append

    seconds = _seconds(duration)

    async def work(client: Client) -> int:
        descriptor = open_to_append(output)
        try:
            recorder = Recorder(client, descriptor, secrets=include_secrets, most_bytes=max_size * _MIB)
            running = asyncio.ensure_future(recorder.run())
            for each in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(each, running.cancel)
            if seconds:
                asyncio.get_running_loop().call_later(seconds, running.cancel)
            click.echo(f"recording into {output}")
            with suppress(asyncio.CancelledError):
                try:
                    await running
                except Full:
                    click.echo(f"{output} has reached {max_size} MiB (--max-size)", err=True)
            return recorder.changes
        finally:
            os.close(descriptor)

    try:
        changes = run_with_client(Target(kubeconfig, context, data_dir), work)
    except DumpError as error:
        fail(printable(error))
    click.echo(f"recorded {changes} changes: {output}, {output.stat().st_size / _MIB:.1f} MiB")


def _seconds(duration: str) -> float:
    """Return the seconds of a duration, 0 for "". Raises UsageError."""
    from steersman.machinery.values.durations import DurationError, parse_duration

    if not duration:
        return 0.0
    try:
        found = parse_duration(duration) / 1e9
    except DurationError as error:
        raise click.UsageError(f"--for: {error}: write 90s, 30m or 24h", click.get_current_context()) from None
    if found <= 0:
        raise click.UsageError("--for: more than 0 is needed", click.get_current_context())
    return found

"""`steersman replay`: plays a recording on a simulated cluster of its own."""

from __future__ import annotations

import asyncio
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from steersman.cli.durations import in_words
from steersman.cli.numbers import FiniteRange
from steersman.cli.paths import AbsolutePath, OutputFile
from steersman.cli.program import fail
from steersman.cli.serve import allow_many_files, ready_line
from steersman.cli.terminal_text import printable
from steersman.cli.termination import Terminated, cancelled_by_sigterm
from steersman.work.no_collections import no_collections

if TYPE_CHECKING:
    from steersman.cluster.replaying.player import Played
    from steersman.cluster.replaying.recorded import Recorded
    from steersman.controlplane.options import Options

_FEW: Final = 10
"""Refused actions that are printed."""
_FASTEST: Final = 3600.0


@click.command()
@click.argument("file", type=AbsolutePath(dir_okay=False, exists=True))
@click.option(
    "--speed",
    type=FiniteRange(0.001, _FASTEST),
    default=60.0,
    metavar="number",
    help="simulated seconds in a real one",
)
@click.option("--until", metavar="time", help="end: time (RFC 3339), or duration from the beginning such as 2h30m")
@click.option("--nodes", type=click.IntRange(0), default=0, metavar="int", help="further simulated nodes")
@click.option("-o", "--output", type=OutputFile(), metavar="file", help="file for the objects of the end")
@click.option(
    "--secure-port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="int",
    help="port of the cluster, 0 for a free one",
)
def replay(file: Path, speed: float, until: str | None, nodes: int, output: Path | None, secure_port: int) -> None:
    """Play a recording: a cluster begins with its objects, and users do what they did, each at its time.

    FILE is of `steersman record`, or a trace of SimKube. Controllers, autoscalers, scheduler and nodes of the cluster do the
    rest, by a clock that runs --speed times as fast. Nothing stays but --output, which `steersman up --from` opens.
    """
    import uvloop

    from steersman.cluster.configuration import ConfigurationError
    from steersman.cluster.replaying.recorded import load_recorded
    from steersman.controlplane.options import Options, OptionsError
    from steersman.dumps.errors import DumpError

    with no_collections(), ExitStack() as ending:
        try:
            recorded = load_recorded(file)
            end = _end(until, recorded)
            if end < recorded.start:
                raise click.UsageError("--until: before the recording begins", click.get_current_context())
            _check_length(recorded, end)
            folder = ending.enter_context(tempfile.TemporaryDirectory(prefix="steersman-"))
            options = Options(
                data_dir=Path(folder),
                storage="memory",
                bind_address="127.0.0.1",
                secure_port=secure_port,
                allow_privileged=True,
            )
            allow_many_files()
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                played, seconds = runner.run(
                    cancelled_by_sigterm(_replay(options, recorded, speed, end, nodes, output))
                )
        except (ConfigurationError, DumpError, OptionsError, OSError) as error:
            fail(printable(error))
        except KeyboardInterrupt:
            fail("interrupted")
        except Terminated:
            fail("terminated")
    actions = ", ".join(f"{count} {verb}" for verb, count in played.actions.items())
    ratio = played.seconds / seconds if seconds else 0.0
    click.echo(
        f"played {in_words(played.seconds)} in {seconds:.1f} s (speed {ratio:.0f}): "
        f"{played.changes} recorded changes, requests sent: {actions}"
    )
    for each in played.problems[:_FEW]:
        click.echo(f"refused: {printable(each)}", err=True)
    if played.refused > _FEW:
        click.echo(f"and {played.refused - _FEW} more", err=True)


def _end(until: str | None, recorded: Recorded) -> float:
    """Return the end of a replay in seconds since 1970. Raises UsageError."""
    if until is None:
        return recorded.end
    from steersman.machinery.values.durations import DurationError, parse_duration
    from steersman.machinery.values.times import TimeError, parse

    try:
        return recorded.start + parse_duration(until) / 1e9
    except DurationError:
        try:
            return parse(until).timestamp()
        except TimeError:
            raise click.UsageError(
                f"--until: {until!r} is neither a time (RFC 3339) nor a duration such as 2h30m",
                click.get_current_context(),
            ) from None


def _check_length(recorded: Recorded, end: float) -> None:
    """Raise DumpError for a replay that takes longer than the clock of a cluster can be moved."""
    from steersman.cluster.clock import FURTHEST
    from steersman.dumps.errors import DumpError

    if end - recorded.start > FURTHEST:
        most = int(FURTHEST // 86400)
        raise DumpError(f"{recorded.path}: a replay has at most {most} days: use --until")


async def _replay(
    options: Options, recorded: Recorded, speed: float, end: float, nodes: int, output: Path | None
) -> tuple[Played, float]:
    """Return what was played, and the real seconds that it took."""
    from steersman.cluster.cluster import Cluster
    from steersman.cluster.configuration import Configuration, NodeGroup
    from steersman.cluster.replaying.plan import Planner
    from steersman.cluster.replaying.player import Player

    groups = (NodeGroup(count=nodes),) if nodes else ()
    cluster = Cluster(options, Configuration(groups, begins_with=recorded.beginning), owns_process=True)
    address = await cluster.start()
    try:
        click.echo(ready_line(address))
        client = cluster.administrator()
        began = time.monotonic()
        cluster.set_speed(speed)
        played = await Player(client, Planner(recorded.ends)).play(recorded.changes(), start=recorded.start, until=end)
        seconds = time.monotonic() - began
        cluster.set_speed(1)
        await cluster.settle(10)
        if output is not None:
            from steersman.cli.import_command import write_import

            await write_import(client, output, secrets=True, fields=[])
        return played, seconds
    finally:
        await cluster.stop()

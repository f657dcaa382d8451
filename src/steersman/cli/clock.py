"""`steersman clock`: stops, moves or speeds up the time of a running cluster through its API."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import click
import msgspec

from steersman.cli.cluster_client import Target, cluster_options, run_with_client
from steersman.cli.durations import in_hours
from steersman.cli.numbers import FiniteRange
from steersman.client.client import Client
from steersman.cluster.clock import ClockState
from steersman.cluster.clock_paths import PATH, ClockChange
from steersman.machinery.values.durations import DurationError, parse_duration

_AGAIN: Final = 0.05
"""Seconds between two looks at a clock that is moved."""


@click.group(invoke_without_command=True)
@click.pass_context
@cluster_options
def clock(context: click.Context, /, **target: Any) -> None:
    """Print the time of a running cluster, or change it.

    Controllers, scheduler and nodes follow, and the times in objects. Connections and other programs do not.
    """
    context.obj = Target(**target)
    if context.invoked_subcommand is None:
        _print(context, {}, None)


@clock.command()
@click.pass_context
@cluster_options
def pause(context: click.Context, /, **target: Any) -> None:
    """Stop the time. Only waits of less than a second go on."""
    _print(context, target, ClockChange(speed=0))


@clock.command()
@click.pass_context
@cluster_options
def resume(context: click.Context, /, **target: Any) -> None:
    """Let the time go on, at the real speed."""
    _print(context, target, ClockChange(speed=1))


@clock.command()
@click.argument("duration")
@click.pass_context
@cluster_options
def advance(context: click.Context, /, duration: str, **target: Any) -> None:
    """Move the time by DURATION (30s, 2h, 24h).

    Everything that falls due in it happens, each at its time. A leap that takes ten minutes ends then: give the command
    again for the rest.
    """
    try:
        parse_duration(duration)
    except DurationError as error:
        raise click.UsageError(f"{error}: write 90s, 30m or 24h", context) from None
    _print(context, target, ClockChange(advance=duration))


@clock.command()
@click.argument("factor", type=FiniteRange(0))
@click.pass_context
@cluster_options
def speed(context: click.Context, /, factor: float, **target: Any) -> None:
    """Let FACTOR seconds pass in each second."""
    _print(context, target, ClockChange(speed=factor))


def _print(context: click.Context, own: dict[str, Any], change: ClockChange | None) -> None:
    """Change the clock of a cluster and print its state; options of the group count where a command has `own` none."""
    target = Target(**own) if any(own.values()) else context.obj
    click.echo(line_of(run_with_client(target, lambda client: _changed(client, change))))


async def _changed(client: Client, change: ClockChange | None) -> ClockState:
    """Change the clock, and return its state when it is no longer moved. Raises StatusError, Unreachable."""
    body = b"" if change is None else msgspec.json.encode(change)
    answer = await client.request("GET" if change is None else "POST", PATH, body)
    state = msgspec.json.decode(answer, type=ClockState)
    while change is not None and change.advance is not None and state.advancing_seconds:
        await asyncio.sleep(_AGAIN)
        state = msgspec.json.decode(await client.request("GET", PATH), type=ClockState)
    return state


def line_of(state: ClockState) -> str:
    """Return a line about the clock."""
    ahead = f"{in_hours(round(abs(state.ahead_seconds)))} {'behind' if state.ahead_seconds < 0 else 'ahead'}"
    moving = f", {in_hours(state.advancing_seconds)} of a leap to come" if state.advancing_seconds else ""
    missed = f", the last leap ended {in_hours(state.missed_seconds)} too early" if state.missed_seconds else ""
    return f"{state.time}, {ahead}, {f'speed {state.speed:g}' if state.speed else 'stopped'}{moving}{missed}"

"""`steersman stress`: faults of an operator, by a run for each fault at each of its requests."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from steersman.cli.paths import AbsolutePath
from steersman.cli.program import fail_with
from steersman.cli.terminal_text import printable
from steersman.cli.termination import Terminated, cancelled_by_sigterm
from steersman.cli.up.screen import can_redraw
from steersman.cli.verdict import NO_VERDICT, VerdictCommand
from steersman.work.patterns import late_pattern

if TYPE_CHECKING:
    from steersman.stress.campaign import Result
    from steersman.stress.point import Kind, Plan
    from steersman.stress.run import Settings

_FOUND: Final = 1
_LONGEST: Final = 2_000
_SPACES: Final = late_pattern("( +)")
_BETWEEN: Final = 60.0
"""Seconds between two lines of progress where lines cannot be redrawn."""


class _Seconds(click.ParamType[float]):
    """A duration such as 90s or 5m, in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds. Fails for anything but a duration."""
        from steersman.machinery.values.durations import DurationError, parse_duration

        if isinstance(value, float):
            return value
        try:
            seconds = parse_duration(str(value)) / 1e9
        except DurationError as error:
            self.fail(str(error), param, ctx)
        if seconds < 0:
            self.fail(f"{value} is negative", param, ctx)
        return seconds


def _kinds(context: click.Context, _: click.Parameter, text: str) -> tuple[Kind, ...]:
    from steersman.machinery.suggestions import known_names_hint
    from steersman.stress.point import Kind

    names = [name for each in text.split(",") if (name := each.strip(" "))]
    found: list[Kind] = []
    for name in names:
        fitting = [kind for kind in Kind if kind.value == name or kind.value.partition("-")[0] == name]
        if not fitting:
            known = {kind.value: kind for kind in Kind}
            raise click.BadParameter(f"no kind {name}{known_names_hint(name, known)}", context)
        found += fitting
    return tuple(found) or tuple(Kind)


@click.command(cls=VerdictCommand, context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option("--operator", default="", show_default=False, metavar="string", help="shell command of the operator")
@click.option("--test", default="", show_default=False, metavar="string", help="shell command of the test beside it")
@click.option(
    "--manifests",
    multiple=True,
    type=AbsolutePath(),
    metavar="path",
    help="file or folder of objects that exist before each run",
)
@click.option("--controllers", is_flag=True, help="run kube-controller-manager's controllers, too")
@click.option("--nodes", type=click.IntRange(0), default=0, help="simulated nodes, with a scheduler and controllers")
@click.option("--time", "budget", type=_Seconds(), default="5m", help="time after which no new run begins")
@click.option("--parallel", type=click.IntRange(1, 64), default=1, help="runs at once, each with a server of its own")
@click.option(
    "--kinds",
    default="",
    show_default=False,
    callback=_kinds,
    metavar="strings",
    help="kinds of faults, such as conflict,crash",
)
@click.option(
    "--client", "clients", multiple=True, metavar="string", help="program, by user agent, that faults happen to"
)
@click.option("--settle", type=_Seconds(), default="1s", help="time without a change after which a run is at rest")
@click.option(
    "--patience", type=_Seconds(), default="15s", help="time after the test until which a run is as it should be"
)
@click.option("--hold", type=_Seconds(), default="500ms", help="idle time after which a stale watch goes on")
@click.option("--limit", type=_Seconds(), default="10m", help="time that a test may take")
@click.option("--ignore", "ignored", multiple=True, metavar="pattern", help="places of the end state that do not count")
@click.option("--plan", "plans", multiple=True, type=AbsolutePath(), metavar="path", help="run this plan only")
@click.option(
    "--save",
    default="stress-plans",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="path",
    help="folder for plans that fail",
)
@click.option("-o", "--output", type=click.Choice(["text", "json", "junit"]), default="text", help="form of the output")
@click.option("--junit", type=AbsolutePath(), metavar="path", help="file to write as JUnit XML, too")
def stress(
    command: tuple[str, ...],
    operator: str,
    test: str,
    manifests: tuple[Path, ...],
    controllers: bool,
    nodes: int,
    budget: float,
    parallel: int,
    kinds: tuple[Kind, ...],
    clients: tuple[str, ...],
    settle: float,
    patience: float,
    hold: float,
    limit: float,
    ignored: tuple[str, ...],
    plans: tuple[Path, ...],
    save: Path,
    output: str,
    junit: Path | None,
) -> None:
    """Find faults of an operator: run it once without faults, then once for each fault at each of its requests.

    With --operator and --test, the operator runs beside a test, and is also killed and started again. With COMMAND,
    such as a test suite for envtest, faults happen to the clients in it. A fault is found if the test fails, if the end
    state differs, or if there is no end of writing. Exits with 1 if something is found, with 2 if there is no verdict: a run
    without faults fails, no fault fits, a given plan is not reached, or the command is interrupted.
    """
    from steersman.stress.run import Settings

    context = click.get_current_context()
    if bool(command) == bool(operator or test) or bool(operator) != bool(test):
        raise click.UsageError("give --operator and --test, or a COMMAND after --", context)
    if command:
        kinds = _fitting(kinds, has_clients=bool(clients), context=context)
    _check_folder("--junit", None if junit is None else junit.parent, context)
    settings = Settings(
        operator=operator,
        test=test,
        command=command,
        manifests=manifests,
        nodes=nodes,
        controllers=controllers or nodes > 0,
        settle=settle,
        patience=patience,
        limit=limit,
        hold=hold,
        clients=clients,
        ignored=ignored,
    )
    result = _search(settings, budget, parallel, kinds, _read_plans(plans))
    _print(result, output, save, junit)
    sys.exit(NO_VERDICT if result.reason_without_verdict else _FOUND if result.findings else 0)


def _read_plans(paths: Sequence[Path]) -> list[Plan]:
    from steersman.stress.point import InvalidPlan, read_plan

    try:
        return [read_plan(each) for each in paths]
    except InvalidPlan as error:
        _fail(printable(error))


def _search(settings: Settings, budget: float, parallel: int, kinds: Sequence[Kind], plans: Sequence[Plan]) -> Result:
    """Return the result of a search on an event loop of its own, what there is of it after an interrupt or SIGTERM."""
    import uvloop

    from steersman.cluster.configuration import ConfigurationError
    from steersman.controlplane.options import OptionsError
    from steersman.stress.campaign import Result

    result = Result()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(cancelled_by_sigterm(_run(settings, budget, parallel, kinds, plans, result)))
    except (ConfigurationError, OptionsError, OSError) as error:
        if not result.baselines:
            _fail(printable(error))
        result.interruption = printable(error)
    except (KeyboardInterrupt, Terminated):
        result.interruption = "the search was interrupted"
    return result


async def _run(
    settings: Settings, budget: float, parallel: int, kinds: Sequence[Kind], plans: Sequence[Plan], result: Result
) -> None:
    from steersman.stress.campaign import Campaign
    from steersman.stress.run import CommandRunner, OperatorRunner, Runner, Stand

    assets = _assets(settings) if settings.command else None
    async with AsyncExitStack() as stack:
        stands = [await stack.enter_async_context(Stand(settings, number)) for number in range(parallel)]
        runners: list[Runner] = [
            OperatorRunner(each) if assets is None else CommandRunner(each, assets) for each in stands
        ]
        progress = _Progress(budget)
        campaign = Campaign(
            runners,
            seconds=budget,
            kinds=kinds,
            clients=settings.clients,
            ignored=settings.ignored,
            report=progress.show,
            result=result,
        )
        try:
            await campaign.search(plans)
        finally:
            progress.clear()


def _fitting(kinds: Sequence[Kind], *, has_clients: bool, context: click.Context) -> tuple[Kind, ...]:
    """Return the kinds of faults that can happen to a command: only watches unless the operator's client is known.

    A test that gets an error for a request of its own fails, and the operator is not to blame. Raises UsageError if no
    kind is left.
    """
    from steersman.stress.point import CRASHES, OF_WATCHES

    found = tuple(each for each in kinds if (each not in CRASHES if has_clients else each in OF_WATCHES))
    if not found and all(each in CRASHES for each in kinds):
        raise click.UsageError("--kinds: crashes need --operator and --test in place of a COMMAND", context)
    if not found:
        names = ", ".join(each for each in kinds if each not in CRASHES)
        raise click.UsageError(f"--kinds: {names}: needs --client, the name of the operator's program", context)
    if not has_clients:
        click.echo("faults happen to watches only: --client names the operator, for faults of its requests", err=True)
    return found


def _check_folder(flag: str, folder: Path | None, context: click.Context) -> None:
    """Raise UsageError if the folder of a file to be written is missing, before a search that may take long."""
    if folder is not None and not folder.is_dir():
        raise click.UsageError(f"{flag}: {folder} is no folder", context)


def _assets(settings: Settings) -> Path:
    """Return the folder with the programs of `steersman envtest`. Raises OSError."""
    from steersman.cli.envtest import assets

    nodes = settings.nodes if settings.controllers else None
    return assets.make(assets.home_folder(nodes), nodes)


class _Progress:
    """Line of progress on the standard error."""

    def __init__(self, budget: float) -> None:
        self._budget = budget
        self._began = self._last = time.monotonic()
        self._redraws = can_redraw(sys.stderr)
        self._is_shown = False

    def show(self, result: Result) -> None:
        """Show the state of a search."""
        now = time.monotonic()
        if not self._redraws and now - self._last < _BETWEEN:
            return
        self._last = now
        found = len(result.groups)
        line = f"{len(result.tried)} of {result.total} faults tried, {found} found, {now - self._began:.0f}s"
        click.echo(f"\r\x1b[K{line}" if self._redraws else line, err=True, nl=not self._redraws)
        self._is_shown = self._redraws

    def clear(self) -> None:
        """Remove the line."""
        if self._is_shown:
            click.echo("\r\x1b[K", err=True, nl=False)


def _print(result: Result, output: str, save: Path, junit: Path | None) -> None:
    """Print a result, also if its files cannot be written. Exits with 2 then."""
    from steersman.stress import outputs

    files: dict[int, Path] = {}
    error: OSError | None = None
    try:
        if junit is not None:
            junit.write_bytes(outputs.as_junit(result))
        outputs.write_plans(result, save, files)
    except OSError as failed:
        error = failed
    if output == "json":
        click.echo(outputs.as_json(result), nl=False)
    elif output == "junit":
        click.echo(outputs.as_junit(result), nl=False)
    else:
        for line in outputs.text_lines(result, files):
            click.echo(_line(line))
    if error is not None:
        _fail(printable(f"{error.filename}: {error.strerror}"))


def _line(text: str) -> str:
    """Return a line for a terminal, with its spaces."""
    return "".join(each if each[:1] == " " else printable(each, _LONGEST) for each in _SPACES.split(text))


def _fail(text: str) -> NoReturn:
    fail_with(NO_VERDICT, text)

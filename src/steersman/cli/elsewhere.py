"""Commands that work on another API server until they get a signal or lose their lease."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from steersman.cli import logs
from steersman.cli.command import Option
from steersman.cli.program import fail
from steersman.controlplane.options import FLAGS

if TYPE_CHECKING:
    from steersman.client.over_tls import TLSTransport

F = TypeVar("F", bound=Callable[..., Any])
Work = Callable[["TLSTransport"], Coroutine[Any, Any, None]]


kubeconfig_option: Final[Callable[[F], F]] = click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    required=True,
    cls=Option,
    section="Generic",
    help="Kubeconfig with the address of the API server and the credentials for it.",
)
leader_elect_option: Final[Callable[[F], F]] = click.option(
    "--leader-elect/--no-leader-elect",
    default=True,
    cls=Option,
    section="Leader election",
    help="Work only while holding a lease, so that only one instance works.",
)


def log_options(command: F) -> F:
    """Add `-v` and `--logging-format`, which the command receives as `verbosity` and `logging_format`."""
    section = partial(click.option, cls=Option, section="Logs")
    shown = section(
        "--logging-format",
        type=click.Choice(FLAGS["logging-format"].values),
        default=logs.TEXT,
        help="Format of log lines.",
    )
    level = section(
        "-v", "--v", "verbosity", type=click.IntRange(0), default=0, help=FLAGS["v"].help.capitalize() + "."
    )
    return shown(level(command))


def run_on(kubeconfig: Path, work: Work, verbosity: int = 0, logging_format: str = logs.TEXT) -> None:
    """Run `work` on the server of a kubeconfig.

    If it cannot start, or ends by itself, prints one line and exits with 1. Logs the start, the end, the election as
    leader, and warnings.
    """
    logs.configure_logging(verbosity, logging_format)
    began = time.monotonic()
    logging.getLogger("steersman.client.leader_election").setLevel(logging.INFO)
    from steersman.client.over_tls import TLSTransport
    from steersman.client.transport import Unreachable
    from steersman.machinery.errors.status import StatusError
    from steersman.webhooks.kubeconfig import KubeconfigError
    from steersman.webhooks.user_kubeconfig import load_kubeconfigs

    try:
        endpoint = load_kubeconfigs([kubeconfig])
        transport = TLSTransport(endpoint)
        logs.log_work(kubeconfig, endpoint.shown)
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            was_stopped = runner.run(_until_stopped(transport, work))
    except (KubeconfigError, OSError, StatusError, Unreachable) as error:
        fail(str(error))
    if not was_stopped:
        fail("the lease was lost")
    logs.log_end(time.monotonic() - began)


async def _until_stopped(transport: TLSTransport, work: Work) -> bool:
    """Run `work` until it ends or a signal arrives; return True after a signal."""
    working = asyncio.ensure_future(work(transport))
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, working.cancel)
    try:
        await working
    except asyncio.CancelledError:
        return True
    return False

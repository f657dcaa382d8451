"""The cluster that a command reads: its options, and a client for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click

from steersman.cli.merged_context import files_of_kubectl, own_file
from steersman.cli.paths import DEFAULT_DATA_DIR, AbsolutePath, default_data_dir
from steersman.cli.program import fail
from steersman.cli.terminal_text import printable
from steersman.cli.termination import Terminated, cancelled_by_sigterm
from steersman.cli.up.process_file import running
from steersman.controlplane.data_files import check_files

if TYPE_CHECKING:
    from steersman.client.client import Client
    from steersman.webhooks.kubeconfig import Endpoint

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")

_MANAGER: Final = "steersman"


class Target(NamedTuple):
    """Options that choose a cluster; see `cluster_options`."""

    kubeconfig: Path | None = None
    context: str = ""
    data_dir: Path | None = None


def cluster_options(command: F) -> F:
    """Add --kubeconfig, --context and --data-dir, which the command receives as the values of a Target."""
    options = (
        click.option(
            "--data-dir",
            type=AbsolutePath(),
            metavar="folder",
            help=f"folder of a running cluster or server  [default: {DEFAULT_DATA_DIR}]",
        ),
        click.option("--context", default="", show_default=False, metavar="string", help="context of the kubeconfig"),
        click.option(
            "--kubeconfig",
            type=AbsolutePath(),
            metavar="file",
            help="kubeconfig of another cluster  [default: the running cluster in --data-dir, else kubectl's]",
        ),
    )
    for option in options:
        command = option(command)
    return command


def kubeconfigs_of(target: Target) -> list[Path]:
    """Return the kubeconfigs of the chosen cluster.

    They are the given file, else the one of the cluster that runs in the data folder, else kubectl's. With a context
    and no data folder the local cluster is not looked for. Exits with 1 if a given data folder has no running cluster.
    """
    if target.kubeconfig is not None:
        return [target.kubeconfig]
    if target.data_dir is not None or not target.context:
        folder = target.data_dir or default_data_dir()
        if _is_running(folder):
            return [own_file(folder)]
        if target.data_dir is not None:
            fail(f"no cluster or server is running in {folder}")
    kubeconfigs = [each for each in files_of_kubectl() if each.exists()]
    if not kubeconfigs:
        fail(f"no cluster is running in {default_data_dir()}, and there is no kubeconfig: use --kubeconfig")
    return kubeconfigs


def run_with_client(target: Target, work: Callable[[Client], Coroutine[Any, Any, R]]) -> R:
    """Return the result of `work`, which gets a client of the chosen cluster; on an error print a line, exit with 1."""
    from steersman.client.client import Client
    from steersman.client.over_tls import TLSTransport
    from steersman.client.transport import Unreachable
    from steersman.machinery.errors.status import StatusError

    endpoint = endpoint_of(target)

    async def run() -> R:
        client = Client(TLSTransport(endpoint), _MANAGER)
        try:
            return await work(client)
        finally:
            await client.aclose()

    try:
        return asyncio.run(cancelled_by_sigterm(run()))
    except (OSError, StatusError, Unreachable) as error:
        fail(printable(error))
    except Terminated:
        fail("terminated")


def endpoint_of(target: Target) -> Endpoint:
    """Return the server of the chosen cluster with the user's credentials; on an error print a line, exit with 1."""
    from steersman.webhooks.kubeconfig import KubeconfigError
    from steersman.webhooks.user_kubeconfig import load_kubeconfigs

    try:
        return load_kubeconfigs(kubeconfigs_of(target), target.context)
    except (KubeconfigError, OSError) as error:
        fail(printable(error))


def _is_running(folder: Path) -> bool:
    try:
        check_files(folder)
        return running(folder) is not None
    except OSError:
        return False

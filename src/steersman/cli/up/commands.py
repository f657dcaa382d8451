"""`steersman up`: a whole simulated cluster in one process; `status` and `down` find it by its folder."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from steersman.cli.command import FlagsCommand, Option
from steersman.cli.flags import parse
from steersman.cli.merged_context import remove_contexts
from steersman.cli.paths import AbsolutePath, cluster_data_dir, default_data_dir
from steersman.cli.program import fail
from steersman.cli.serve import Service, os_error_line, run, say_ready
from steersman.cli.up.page import NO_PORT, Page, address_of_page, page_line
from steersman.cli.up.process_file import Running, claim, end, new_folder_taken_back, running
from steersman.cli.up.screen import can_redraw
from steersman.controlplane.data_files import check_files
from steersman.controlplane.options import Options, OptionsError
from steersman.work.no_collections import no_collections

if TYPE_CHECKING:
    from steersman.cluster.cluster import Cluster
    from steersman.cluster.configuration import Configuration
    from steersman.controlplane.addresses import Address

_DEFAULTS: Final = {
    "bind-address": "127.0.0.1",
    "allow-privileged": "true",
    "history": "256MiB,24h0m0s",
    "faults": "true",
}
_MOST_USED: Final = ("data-dir", "storage", "bind-address", "secure-port", "v")
"""Flags of the server that `--help` lists."""
_PATIENCE: Final = 60.0
"""Seconds that `down` waits for the end of the process."""
_OWN: Final = ("nodes", "config", "from", "detach", "inspect-port")
"""Names of the command's own flags."""
_WHOLE: Final = click.IntRange(0)
_File: Final = AbsolutePath(dir_okay=False)


@click.command(cls=FlagsCommand, defaults={**_DEFAULTS, "controllers": "*"}, most_used=_MOST_USED)
@click.option(
    "--nodes",
    type=_WHOLE,
    metavar="int",
    cls=Option,
    section="Cluster",
    help="number of simulated nodes  [default: 1]",
)
@click.option(
    "--config",
    type=_File,
    metavar="file",
    cls=Option,
    section="Cluster",
    help="YAML file with nodes and objects to create",
)
@click.option(
    "--from",
    "dump",
    type=AbsolutePath(),
    metavar="path",
    cls=Option,
    section="Cluster",
    help="dump of a cluster to begin with",
)
@click.option(
    "--detach",
    is_flag=True,
    cls=Option,
    section="Cluster",
    help="return when it is ready, and leave it running",
)
@click.option(
    "--inspect-port",
    type=click.IntRange(NO_PORT, 65535),
    metavar="int",
    cls=Option,
    section="Cluster",
    help="port of its page, -1 for none  [default: a free one]",
)
@click.argument("flags", nargs=-1, type=click.UNPROCESSED)
def up(
    nodes: int | None,
    config: Path | None,
    dump: Path | None,
    detach: bool,
    inspect_port: int | None,
    flags: tuple[str, ...],
) -> None:
    """Run a cluster in one process: server, controllers, scheduler and nodes.
    Its data stays in --data-dir. `steersman kubeconfig` configures kubectl.
    """
    with no_collections():  # until the cluster is ready: imported modules stay in memory
        _up(nodes, config, dump, detach, inspect_port, flags)


def _up(
    nodes: int | None,
    config: Path | None,
    dump: Path | None,
    detach: bool,
    inspect_port: int | None,
    flags: tuple[str, ...],
) -> None:
    try:
        options = parse([*(f"--{name}={value}" for name, value in _DEFAULTS.items()), *flags], default_data_dir(), _OWN)
        configuration = _configuration(nodes, config, dump, options)
    except OptionsError as error:
        fail(str(error))
    given = (("nodes", nodes), ("config", config), ("from", dump), ("inspect-port", inspect_port))
    own = {name: str(value) for name, value in given if value is not None}
    page = Page(options.data_dir, inspect_port or 0)
    with new_folder_taken_back(options.data_dir):
        _run_in_folder(options, configuration, own, page, detach=detach)


def _run_in_folder(
    options: Options, configuration: Configuration, own: dict[str, str], page: Page, *, detach: bool
) -> None:
    """Claim the folder for the cluster, and run it; `own` are the values of the command's own flags."""
    try:
        check_files(options.data_dir)
        claimed = claim(options.data_dir)
    except OSError as error:
        fail(os_error_line(error, options.data_dir))
    if claimed is None:
        found = _running(options.data_dir)
        down = f"`steersman down --data-dir {options.data_dir}`"
        process = f", as process {found.pid}; use {down} to end it" if found is not None and found.pid else ""
        fail(f"a cluster or a server is already running in {options.data_dir}{process}")
    with claimed:
        if detach:
            from steersman.cli.up import detached

            click.echo(detached.detach(options.data_dir, claimed, partial(_run, options, configuration, own, page)))
            if sys.stdout.isatty():
                click.echo(page_line(address_of_page(options.data_dir)))
                click.echo("try it:  steersman kubeconfig && kubectl get nodes")
        elif can_redraw(sys.stdout):
            _show(options, configuration, own, page)
        else:
            _run(options, configuration, own, page, None)


def _configuration(nodes: int | None, config: Path | None, dump: Path | None, options: Options) -> Configuration:
    """Return the cluster's configuration. Raises OptionsError.

    A cluster that begins or began with a dump has the dump's nodes, and no others by default.
    """
    from steersman.cluster.configuration import Configuration, ConfigurationError, NodeGroup
    from steersman.cluster.opening.note import read_note

    if nodes is not None and config is not None:
        raise OptionsError("--nodes and --config contradict each other: both define the nodes")
    try:
        configuration = Configuration() if config is None else Configuration.load(config)
        if nodes is not None:
            configuration = Configuration((NodeGroup(count=nodes),))
        elif config is None and (dump is not None or read_note(options.data_dir) is not None):
            configuration = Configuration(())
        configuration = replace(configuration, pools=True, kwok=True, dump=dump)
        configuration.simulated_nodes()
    except (ConfigurationError, OSError) as error:
        raise OptionsError(str(error)) from None
    return configuration


def _run(
    options: Options,
    configuration: Configuration,
    own: dict[str, str],
    page: Page,
    ready: Callable[[Address], None] | None,
) -> None:
    """Run the cluster until it is interrupted; `ready` reports that it is ready, by default by one line."""

    def say(address: Address) -> None:
        (ready or say_ready)(address)
        if ready is None and sys.stdout.isatty():
            click.echo(page_line(page.address))

    _serve(options, own, page, partial(_cluster, options, configuration), say)


def _show(options: Options, configuration: Configuration, own: dict[str, str], page: Page) -> None:
    """Run the cluster until it is interrupted, and show its state on the terminal."""
    from steersman.cli.up.shown import ShownCluster

    nodes = sum(each.count for each in configuration.nodes)
    shown = ShownCluster(partial(_cluster, options, configuration), nodes, lambda: page.address)
    _serve(options, own, page, lambda: shown, shown.ready)


def _cluster(options: Options, configuration: Configuration) -> Cluster:
    from steersman.cluster.cluster import Cluster

    return Cluster(options, configuration, owns_process=True)


def _serve(
    options: Options,
    own: dict[str, str],
    page: Page,
    make: Callable[[], Service],
    ready: Callable[[Address], None],
) -> None:
    from steersman.cluster.configuration import ConfigurationError

    def started(address: Address) -> None:
        page.start(address.kubeconfig)
        ready(address)

    try:
        run(options, make=lambda _: make(), ready=started, usual=_DEFAULTS, own=own)
    except ConfigurationError as error:
        fail(str(error))


def _running(folder: Path) -> Running | None:
    """Return the process of a folder's cluster; exit with 1 if another user could have forged the information."""
    try:
        check_files(folder)
        return running(folder)
    except OSError as error:
        fail(os_error_line(error, folder))


@click.command()
@cluster_data_dir
def status(data_dir: Path) -> None:
    """Print the state of the cluster or server in a folder; exit with 1 if it does not answer."""
    found = require_running(data_dir)
    from steersman.cli.up.status import status_lines
    from steersman.client.transport import Unreachable
    from steersman.machinery.errors.status import StatusError
    from steersman.webhooks.kubeconfig import KubeconfigError

    try:
        page = address_of_page(data_dir) if sys.stdout.isatty() else ""
        lines = asyncio.run(status_lines(data_dir, found, page))
    except (KubeconfigError, StatusError, TimeoutError, Unreachable) as error:
        fail(f"process {found.pid} is running but does not answer: {str(error) or 'timed out'}")
    click.echo("\n".join(lines))


@click.command()
@cluster_data_dir
def down(data_dir: Path) -> None:
    """End the cluster or server in a folder.

    Its data stays in the folder. Its context is removed from the user's kubeconfig.
    """
    found = require_running(data_dir)
    if not found.pid:
        fail(f"a cluster is starting in {data_dir}, or was started by an older version: end its process yourself")
    try:
        end(data_dir, found)
    except ProcessLookupError:
        pass  # it has ended meanwhile
    except OSError as error:
        fail(f"process {found.pid} cannot be ended: {error.strerror or error}")
    until = time.monotonic() + _PATIENCE
    while (still := _running(data_dir)) is not None and still.pid == found.pid:
        if time.monotonic() > until:
            fail(f"process {found.pid} has not ended after {_PATIENCE:.0f} s")
        time.sleep(0.02)
    click.echo("ended")
    _remove_context(data_dir)


def _remove_context(folder: Path) -> None:
    for name, path in remove_contexts(folder):
        click.echo(f"context {name} was removed from {path}")


def require_running(folder: Path) -> Running:
    """Return the process in a folder; exit with 1 if there is none."""
    found = _running(folder)
    if found is None:
        fail(f"no cluster or server is running in {folder}")
    return found

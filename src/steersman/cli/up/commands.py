"""`steersman up`: a whole simulated cluster in one process; `status` and `down` find it by its folder."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from steersman.cli.command import FlagsCommand, Option
from steersman.cli.flags import parse
from steersman.cli.merged_context import take_out
from steersman.cli.paths import AbsolutePath, cluster_data_dir, default_data_dir
from steersman.cli.serve import Started, fail, os_error_line, run
from steersman.cli.up.process_file import Running, claim, end, new_folder_taken_back, running
from steersman.cli.up.screen import can_redraw
from steersman.controlplane.data_files import check_files
from steersman.controlplane.options import Options, OptionsError
from steersman.work.no_collections import no_collections

if TYPE_CHECKING:
    from steersman.cluster.cluster import Cluster
    from steersman.cluster.configuration import Configuration
    from steersman.controlplane.addresses import Address

_DEFAULTS: Final = {"bind-address": "127.0.0.1", "allow-privileged": "true"}
_MOST_USED: Final = ("data-dir", "storage", "bind-address", "secure-port", "v")
"""Flags of the server that `--help` shows."""
_PATIENCE: Final = 60.0
"""Seconds that `down` waits."""
_OWN: Final = ("nodes", "config", "detach")
"""Names of its own flags."""
_WHOLE: Final = click.IntRange(0)
_File: Final = AbsolutePath(dir_okay=False)


@click.command(cls=FlagsCommand, defaults={**_DEFAULTS, "controllers": "*"}, most_used=_MOST_USED)
@click.option(
    "--nodes",
    type=_WHOLE,
    metavar="int",
    cls=Option,
    section="Cluster",
    help="how many simulated nodes there are  [default: 1]",
)
@click.option(
    "--config",
    type=_File,
    metavar="file",
    cls=Option,
    section="Cluster",
    help="nodes in groups, and objects to begin with, in YAML",
)
@click.option(
    "--detach",
    is_flag=True,
    cls=Option,
    section="Cluster",
    help="return when it is ready, and leave it running",
)
@click.argument("flags", nargs=-1, type=click.UNPROCESSED)
def up(nodes: int | None, config: Path | None, detach: bool, flags: tuple[str, ...]) -> None:
    """Run a whole simulated cluster: server, controllers, scheduler and nodes in one process.
    What it has stays in its --data-dir. `steersman kubeconfig` points kubectl at it.
    """
    with no_collections():  # until the cluster is ready: what is imported stays
        _up(nodes, config, detach, flags)


def _up(nodes: int | None, config: Path | None, detach: bool, flags: tuple[str, ...]) -> None:
    try:
        options = parse([*(f"--{name}={value}" for name, value in _DEFAULTS.items()), *flags], default_data_dir(), _OWN)
        configuration = _configuration(nodes, config)
    except OptionsError as error:
        fail(str(error))
    own = {name: str(value) for name, value in (("nodes", nodes), ("config", config)) if value is not None}
    with new_folder_taken_back(options.data_dir):
        _run_in_folder(options, configuration, own, detach=detach)


def _run_in_folder(options: Options, configuration: Configuration, own: dict[str, str], *, detach: bool) -> None:
    """Claim the folder for the cluster, and run it there; `own` are the command's own flags that were given."""
    try:
        check_files(options.data_dir)
        claimed = claim(options.data_dir)
    except OSError as error:
        fail(os_error_line(error, options.data_dir))
    if claimed is None:
        found = _running(options.data_dir)
        down = f"`steersman down --data-dir {options.data_dir}`"
        process = f", as process {found.pid}: {down} ends it" if found is not None and found.pid else ""
        fail(f"a cluster or a server runs in {options.data_dir} already{process}")
    with claimed:
        if detach:
            from steersman.cli.up import detached

            click.echo(detached.detach(options.data_dir, claimed, partial(_run, options, configuration, own)))
            if sys.stdout.isatty():
                click.echo("try it:  steersman kubeconfig && kubectl get nodes")
        elif can_redraw(sys.stdout):
            _show(options, configuration, own)
        else:
            _run(options, configuration, own, None)


def _configuration(nodes: int | None, config: Path | None) -> Configuration:
    """What the command line says of the cluster. Raises OptionsError."""
    from steersman.cluster.configuration import Configuration, ConfigurationError, NodeGroup

    if nodes is not None and config is not None:
        raise OptionsError("--nodes and --config: either of them says what nodes there are")
    try:
        configuration = Configuration() if config is None else Configuration.load(config)
        if nodes is not None:
            configuration = Configuration((NodeGroup(count=nodes),))
        configuration.simulated_nodes()
    except ConfigurationError as error:
        raise OptionsError(str(error)) from None
    return configuration


def _run(
    options: Options, configuration: Configuration, own: dict[str, str], ready: Callable[[Address], None] | None
) -> None:
    """The cluster, until it is interrupted; `ready` says that it is, by default in one line."""
    _serve(options, own, partial(_cluster, options, configuration), ready)


def _show(options: Options, configuration: Configuration, own: dict[str, str]) -> None:
    """The same, with what becomes of it on the terminal."""
    from steersman.cli.up.shown import ShownCluster

    nodes = sum(each.count for each in configuration.nodes)
    shown = ShownCluster(partial(_cluster, options, configuration), nodes)
    _serve(options, own, lambda: shown, shown.ready)


def _cluster(options: Options, configuration: Configuration) -> Cluster:
    from steersman.cluster.cluster import Cluster

    return Cluster(options, configuration, owns_process=True)


def _serve(
    options: Options, own: dict[str, str], make: Callable[[], Started], ready: Callable[[Address], None] | None
) -> None:
    from steersman.cluster.configuration import ConfigurationError

    try:
        run(options, make=lambda _: make(), ready=ready, usual=_DEFAULTS, own=own)
    except ConfigurationError as error:
        fail(str(error))


def _running(folder: Path) -> Running | None:
    """The process that is the cluster of a folder; exits with 1 if another user could say who that is."""
    try:
        check_files(folder)
        return running(folder)
    except OSError as error:
        fail(os_error_line(error, folder))


@click.command()
@cluster_data_dir
def status(data_dir: Path) -> None:
    """Say how a cluster or a server is that runs in a folder, and what is on it; exit with 1 if none answers."""
    found = _found(data_dir)
    from steersman.cli.up.status import look
    from steersman.client.transport import Unreachable
    from steersman.machinery.errors.status import StatusError
    from steersman.webhooks.kubeconfig import KubeconfigError

    try:
        lines = asyncio.run(look(data_dir, found))
    except (KubeconfigError, StatusError, TimeoutError, Unreachable) as error:
        fail(f"process {found.pid} runs, but does not answer: {str(error) or 'it takes too long'}")
    click.echo("\n".join(lines))


@click.command()
@cluster_data_dir
def down(data_dir: Path) -> None:
    """End a cluster or a server that runs in a folder. What it has stays in the folder; its context is taken out of
    the kubeconfig of its user, if it is there."""
    found = _found(data_dir)
    if not found.pid:
        fail(f"a cluster is just starting in {data_dir}, or an older version has started it: end that by itself")
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
    _take_out_context(data_dir)


def _take_out_context(folder: Path) -> None:
    for name, path in take_out(folder):
        click.echo(f"context {name} was taken out of {path}")


def _found(folder: Path) -> Running:
    """The process that runs in a folder; ends the program if there is none."""
    found = _running(folder)
    if found is None:
        fail(f"no cluster runs in {folder}, and no server")
    return found

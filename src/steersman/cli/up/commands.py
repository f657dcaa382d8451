"""`steersman up`: a whole simulated cluster in one process; `status` and `down` find it by its folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import click

from steersman.cli.flags import parse
from steersman.cli.paths import default_data_dir
from steersman.cli.serve import Started, fail, run
from steersman.cli.up.process_file import claim, running
from steersman.controlplane.options import Options, OptionsError

_DEFAULTS: Final = ("--bind-address=127.0.0.1", "--allow-privileged=true")
_LOG: Final = "up.log"
_PATIENCE: Final = 60.0


@click.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.option("--nodes", type=click.IntRange(0), help="How many nodes are simulated.  [default: 1]")
@click.option(
    "--config", type=click.Path(path_type=Path, dir_okay=False), help="A file that says what nodes there are."
)
@click.option("--detach", is_flag=True, help="Return when the cluster is ready, and leave it running.")
@click.argument("flags", nargs=-1, type=click.UNPROCESSED)
def up(nodes: int | None, config: Path | None, detach: bool, flags: tuple[str, ...]) -> None:
    """Run a whole simulated cluster: server, controllers and nodes in one process.

    FLAGS are those of `steersman serve`. It listens on 127.0.0.1 unless it is told otherwise, and keeps what it has in
    its --data-dir; --storage=memory is for what is thrown away.
    """
    try:
        options = parse([*_DEFAULTS, *flags], default_data_dir())
    except OptionsError as error:
        fail(str(error))
    from steersman.cluster.configuration import Configuration, ConfigurationError, NodeGroup

    try:
        configuration = Configuration() if config is None else Configuration.load(config)
        if nodes is not None:
            if config is not None:
                fail("--nodes and --config: either of them says what nodes there are")
            configuration = Configuration((NodeGroup(count=nodes),))
        configuration.simulated_nodes()
    except ConfigurationError as error:
        fail(str(error))
    if detach:
        _detach(options)
        return

    def cluster(options: Options) -> Started:
        from steersman.cluster.cluster import Cluster

        return Cluster(options, configuration)

    claimed = claim(options.data_dir)
    if claimed is None:
        fail(f"a cluster runs in {options.data_dir} already, as process {running(options.data_dir)}")
    with claimed:
        try:
            run(options, make=cluster)
        except ConfigurationError as error:
            fail(str(error))


def _detach(options: Options) -> None:
    """Runs the same command in a process of its own, and returns when it is ready."""
    folder = options.data_dir
    if (process := running(folder)) is not None:
        fail(f"it runs already, as process {process}")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    log = folder / _LOG
    arguments = [each for each in sys.argv[1:] if each != "--detach"]
    with open(log, "wb") as output:
        started = subprocess.Popen(
            [sys.executable, "-m", "steersman.cli", *arguments], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until and started.poll() is None:
        line = next((each for each in log.read_text(errors="replace").split("\n") if each.startswith("ready ")), "")
        if line:
            click.echo(line)
            return
        time.sleep(0.02)
    if started.poll() is None:
        started.terminate()
        fail(f"it was not ready after {_PATIENCE:.0f} s: {log} says why")
    said = [each for each in log.read_text(errors="replace").split("\n") if each]
    fail(said[-1].removeprefix("steersman: ") if said else f"it ended at once: {log} is empty")


_data_dir = click.option("--data-dir", type=click.Path(path_type=Path), help="The cluster's folder.")


@click.command()
@_data_dir
def status(data_dir: Path | None) -> None:
    """Say whether a cluster runs that `up --detach` has started, and what is on it."""
    folder = data_dir or default_data_dir()
    process = running(folder)
    if process is None:
        fail(f"no cluster runs in {folder}")
    click.echo(f"running process={process} kubeconfig={folder / 'admin.kubeconfig'}")


@click.command()
@_data_dir
def down(data_dir: Path | None) -> None:
    """End a cluster that `up --detach` has started. What it has stays in its folder."""
    folder = data_dir or default_data_dir()
    process = running(folder)
    if process is None:
        fail(f"no cluster runs in {folder}")
    os.kill(process, signal.SIGTERM)
    until = time.monotonic() + _PATIENCE
    while running(folder) is not None:
        if time.monotonic() > until:
            fail(f"process {process} has not ended after {_PATIENCE:.0f} s")
        time.sleep(0.02)
    click.echo("ended")

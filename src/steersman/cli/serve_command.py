"""`steersman serve`: the API server alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from steersman.cli.command import FlagsCommand
from steersman.cli.flags import parse
from steersman.cli.paths import default_data_dir
from steersman.cli.program import fail
from steersman.cli.serve import run
from steersman.cli.up.process_file import claim, new_folder_taken_back
from steersman.controlplane.options import OptionsError
from steersman.server.version import SHOWN_VERSION
from steersman.work.no_collections import no_collections


@click.command(cls=FlagsCommand)
@click.version_option(SHOWN_VERSION, prog_name="steersman")
@click.argument("flags", nargs=-1, type=click.UNPROCESSED)
def serve(flags: tuple[str, ...]) -> None:
    """Serve the Kubernetes API.

    Flags have kube-apiserver's names, plus --data-dir, --storage, --controllers, --faults and
    --debug-loop-watchdog.

    Defaults are kube-apiserver's if it has usable ones for a stand-alone server; RBAC is on. When the server is ready
    it prints one line with its URL and the administrator's kubeconfig.
    """
    with no_collections():  # until the server is ready: imported modules stay in memory
        try:
            options = parse(list(flags), default_data_dir())
        except OptionsError as error:
            fail(str(error))
        with new_folder_taken_back(options.data_dir), _claimed(options.data_dir):
            run(options)


@contextmanager
def _claimed(folder: Path) -> Iterator[None]:
    """Let `steersman status` and `down` find this process by its folder.

    The folder may be claimed already by a server with separate storage; the storage has a lock of its own.
    """
    try:
        claimed = claim(folder)
    except OSError:  # the start will report the problem with the folder
        claimed = None
    try:
        yield
    finally:
        if claimed is not None:
            claimed.close()

"""`steersman serve`: the API server by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from steersman.cli.command import FlagsCommand
from steersman.cli.flags import parse
from steersman.cli.paths import default_data_dir
from steersman.cli.serve import fail, run
from steersman.cli.up.process_file import claim, new_folder_taken_back
from steersman.controlplane.options import OptionsError
from steersman.server.version import SHOWN_VERSION


@click.command(cls=FlagsCommand)
@click.version_option(SHOWN_VERSION, prog_name="steersman")
@click.argument("flags", nargs=-1, type=click.UNPROCESSED)
def serve(flags: tuple[str, ...]) -> None:
    """Serve the Kubernetes API.

    The flags are kube-apiserver's, by the same names, plus --data-dir, --storage, --controllers and
    --debug-loop-watchdog.
    Defaults are kube-apiserver's too where it has any that a server by itself can use; RBAC is on. When the server is
    ready it says so in one line: where it is, and the kubeconfig of its administrator.
    """
    try:
        options = parse(list(flags), default_data_dir())
    except OptionsError as error:
        fail(str(error))
    with new_folder_taken_back(options.data_dir), _claimed(options.data_dir):
        run(options)


@contextmanager
def _claimed(folder: Path) -> Iterator[None]:
    """Let `steersman status` and `down` find this process by its folder. Another one may be there, where they do not
    share what is stored: its own lock keeps others from that."""
    try:
        claimed = claim(folder)
    except OSError:  # the start says what is wrong with the folder
        claimed = None
    try:
        yield
    finally:
        if claimed is not None:
            claimed.close()

"""`steersman reset`: a folder as it was before the first start of a cluster or a server in it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from steersman.cli.merged_context import take_out
from steersman.cli.paths import DEFAULT_DATA_DIR, AbsolutePath, default_data_dir
from steersman.cli.serve import fail
from steersman.cli.up.process_file import claim, running

_NAMES: Final = (
    "steersman.db", "admin.crt", "admin.key", "admin.kubeconfig", "apiserver.crt", "apiserver.key", "ca.crt", "ca.key",
    "certificates.json", "sa.key", "up.log", "up.pid",
)  # fmt: skip
"""Files that a start makes. Others begin with one of these names, and `.` or `-`: logs, locks, what was set aside."""


@click.command()
@click.option(
    "--data-dir", type=AbsolutePath(file_okay=False), metavar="folder", default=default_data_dir, show_default=False,
    help=f"the cluster's folder  [default: {DEFAULT_DATA_DIR}]",
)  # fmt: skip
@click.option("--yes", is_flag=True, help="delete without a question")
def reset(data_dir: Path, yes: bool) -> None:
    """Delete what a cluster or a server has in its folder: objects, keys, certificates. The next start makes new ones,
    and kubeconfigs of before are of no use; the context in the kubeconfig of its user is taken out.

    Other files in the folder stay, and so does what is stored in etcd.
    """
    if not any(_made_in(data_dir)):
        fail(f"there is nothing of a cluster or a server in {data_dir}")
    if not yes:
        if not sys.stdin.isatty():
            fail(f"--yes is needed where nobody can be asked: everything in {data_dir} would be deleted")
        click.confirm(f"Delete all objects, keys and certificates in {data_dir}?", abort=True)
    try:
        claimed = claim(data_dir)
    except OSError as error:
        fail(f"{data_dir} cannot be changed: {error.strerror}")
    if claimed is None:
        found = running(data_dir)
        process = f" as process {found.pid}" if found is not None else ""
        fail(f"a cluster or a server runs in {data_dir}{process}: `steersman down --data-dir {data_dir}` ends it")
    with claimed:
        _delete(data_dir)
    click.echo(f"deleted what was in {data_dir}")


def _delete(folder: Path) -> None:
    from steersman.controlplane.data_folder import FILE
    from steersman.storage.interface import StorageLocked
    from steersman.storage.sqlite.file import FileLock

    try:
        lock = FileLock(folder / FILE)
    except (StorageLocked, OSError) as error:
        fail(str(error))
    for name, path in take_out(folder):
        click.echo(f"context {name} was taken out of {path}")
    try:
        for each in list(_made_in(folder)):
            each.unlink()
    except OSError as error:
        fail(f"{error.filename} cannot be deleted: {error.strerror}")
    finally:
        lock.release()


def _made_in(folder: Path) -> Iterator[Path]:
    """The files that starts have made in a folder."""
    try:
        found = sorted(folder.iterdir())
    except OSError:
        return
    for each in found:
        if _is_made(each.name) and (each.is_symlink() or each.is_file()):
            yield each


def _is_made(name: str) -> bool:
    return any(name == each or name.startswith((f"{each}.", f"{each}-")) for each in _NAMES)

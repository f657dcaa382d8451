"""`steersman reset`: a folder as it was before the first start of a cluster or a server in it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from steersman.cli.merged_context import take_out
from steersman.cli.paths import cluster_data_dir
from steersman.cli.serve import fail
from steersman.cli.up.process_file import claim, running
from steersman.controlplane.data_files import FILE, FILES, check_files


@click.command()
@cluster_data_dir
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
        check_files(data_dir)
        claimed = claim(data_dir)
        found = running(data_dir) if claimed is None else None
    except OSError as error:
        fail(f"{data_dir} cannot be emptied: {error.strerror or error}")
    if claimed is None:
        process = f" as process {found.pid}" if found is not None and found.pid else ""
        fail(f"a cluster or a server runs in {data_dir}{process}: `steersman down --data-dir {data_dir}` ends it")
    with claimed:
        _delete(data_dir)
    click.echo(f"deleted what was in {data_dir}")


def _delete(folder: Path) -> None:
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
    """Return True for the name of a file that a start makes. Names of locks, logs of SQLite, and files that were set
    aside go on with `.` or `-`."""
    return any(name == each or name.startswith((f"{each}.", f"{each}-")) for each in (FILE, *FILES))

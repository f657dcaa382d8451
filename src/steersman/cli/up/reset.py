"""`steersman reset`: deletes the data of a cluster or server from its folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from steersman.cli.merged_context import remove_contexts
from steersman.cli.paths import cluster_data_dir
from steersman.cli.program import fail
from steersman.cli.up.process_file import claim, running
from steersman.controlplane.data_files import FILE, FILES, check_files


@click.command()
@cluster_data_dir
@click.option("--yes", is_flag=True, help="delete without asking")
def reset(data_dir: Path, yes: bool) -> None:
    """Delete the data of a cluster or server from its folder: objects, keys and certificates.

    The next start creates new ones, so that earlier kubeconfigs become useless. The context in the user's kubeconfig is
    removed. Other files in the folder stay, as does data in etcd.
    """
    if not any(_created_files(data_dir)):
        fail(f"{data_dir} has no data of a cluster or server")
    if not yes:
        if not sys.stdin.isatty():
            fail(f"--yes is required without a terminal, as everything in {data_dir} would be deleted")
        click.confirm(f"Delete all objects, keys and certificates in {data_dir}?", abort=True)
    try:
        check_files(data_dir)
        claimed = claim(data_dir)
        found = running(data_dir) if claimed is None else None
    except OSError as error:
        fail(f"cannot delete data in {data_dir}: {error.strerror or error}")
    if claimed is None:
        process = f" as process {found.pid}" if found is not None and found.pid else ""
        down = f"`steersman down --data-dir {data_dir}`"
        fail(f"a cluster or a server is running in {data_dir}{process}; use {down} to end it")
    with claimed:
        _delete(data_dir)
    click.echo(f"deleted the data in {data_dir}")


def _delete(folder: Path) -> None:
    from steersman.storage.interface import StorageLocked
    from steersman.storage.sqlite.file import FileLock

    try:
        lock = FileLock(folder / FILE)
    except (StorageLocked, OSError) as error:
        fail(str(error))
    for name, path in remove_contexts(folder):
        click.echo(f"context {name} was removed from {path}")
    try:
        for each in list(_created_files(folder)):
            each.unlink()
    except OSError as error:
        fail(f"cannot delete {error.filename}: {error.strerror}")
    finally:
        lock.release()


def _created_files(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder that a server or cluster has created."""
    try:
        found = sorted(folder.iterdir())
    except OSError:
        return
    for each in found:
        if _is_created_name(each.name) and (each.is_symlink() or each.is_file()):
            yield each


def _is_created_name(name: str) -> bool:
    """Return True if a server creates files of this name.

    Locks, SQLite's logs and renamed files have such a name with a suffix after `.` or `-`.
    """
    return any(name == each or name.startswith((f"{each}.", f"{each}-")) for each in (FILE, *FILES))

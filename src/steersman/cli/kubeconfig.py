"""`steersman kubeconfig`: merges a server's context into the user's kubeconfig."""

from __future__ import annotations

import os
from pathlib import Path

import click

from steersman.cli.merged_context import file_at_home, files_of_kubectl, load, merge, own_file, replaced_server, store
from steersman.cli.paths import DEFAULT_DATA_DIR, AbsolutePath, default_data_dir
from steersman.cli.up.process_file import running
from steersman.controlplane.data_files import check_files


@click.command()
@click.option(
    "--data-dir", type=AbsolutePath(), metavar="folder", help=f"the server's folder  [default: {DEFAULT_DATA_DIR}]"
)
@click.option(
    "--file", "target", type=AbsolutePath(), metavar="file", help="kubeconfig to modify  [default: kubectl's]"
)
@click.option("--name", default="steersman", show_default=True, metavar="string", help="the name of the context")
def kubeconfig(data_dir: Path | None, target: Path | None, name: str) -> None:
    """Merge the administrator's context of a server into ~/.kube/config and make it the current context."""
    source = own_file(data_dir or default_data_dir())
    if not source.is_file():
        raise click.ClickException(f"{source} does not exist: start the server first")
    try:
        check_files(source.parent)
    except OSError as error:
        raise click.ClickException(str(error)) from None
    if not name:
        raise click.ClickException("--name: the context needs a name")
    if target is not None and _is_same(target, source):
        click.echo(f"{target} is the server's own file, which has the context already: nothing was changed")
        return
    found = target or next((each for each in files_of_kubectl() if not _is_same(each, source)), file_at_home())
    admin, config = load(source), load(found)
    try:
        replaced = replaced_server(config, admin, name)
        merged = merge(config, admin, name)
    except (KeyError, IndexError, TypeError, AttributeError):
        raise click.ClickException(f"{source} or {found} is not a kubeconfig; neither was changed") from None
    store(found, merged)
    click.echo(f"context {name} is in {found} and is the current context")
    if replaced:
        click.echo(f"the context was for {replaced} before; use --name to keep a context for each server", err=True)
    if not _is_running(source.parent):
        click.echo(f"no server is running in {source.parent} now", err=True)
    if target is None and found not in files_of_kubectl():
        click.echo(f"KUBECONFIG names {source}, which kubectl reads in its place: `unset KUBECONFIG` to use {found}")


def _is_running(folder: Path) -> bool:
    try:
        return running(folder) is not None
    except OSError:
        return False


def _is_same(first: Path, second: Path) -> bool:
    return os.path.realpath(first) == os.path.realpath(second)

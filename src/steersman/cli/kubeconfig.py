"""`steersman kubeconfig`: makes kubectl talk to a server by merging its context into the user's kubeconfig."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from steersman.cli.paths import DEFAULT_DATA_DIR, default_data_dir
from steersman.controlplane.data_files import check_files
from steersman.machinery.private_files import make_folders, write_whole

_LISTS = ("clusters", "users", "contexts")


@click.command()
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    metavar="folder",
    help=f"the server's folder  [default: {DEFAULT_DATA_DIR}]",
)
@click.option(
    "--file",
    "target",
    type=click.Path(path_type=Path),
    metavar="file",
    help="the kubeconfig to change  [default: kubectl's]",
)
@click.option("--name", default="steersman", show_default=True, metavar="string", help="the name of the context")
def kubeconfig(data_dir: Path | None, target: Path | None, name: str) -> None:
    """Merge the administrator's context of a server into ~/.kube/config and make it the current one."""
    source = (data_dir or default_data_dir()) / "admin.kubeconfig"
    if not source.is_file():
        raise click.ClickException(f"{source} is not there: start the server first")
    try:
        check_files(source.parent)
    except OSError as error:
        raise click.ClickException(str(error)) from None
    target = target or _default_target()
    if os.path.realpath(target) == os.path.realpath(source):
        raise click.ClickException(f"{target} is the server's own file, which has the context already: nothing to do")
    if not name:
        raise click.ClickException("--name: the context needs a name")
    admin, config = _load(source), _load(target)
    try:
        merged = merge(config, admin, name)
    except (KeyError, IndexError, TypeError, AttributeError):
        raise click.ClickException(f"{source} or {target} is no kubeconfig; neither was changed") from None
    import yaml

    try:
        # A link stays one: what it points at is changed.
        place = Path(os.path.realpath(target))
        make_folders(place.parent)
        write_whole(place, yaml.safe_dump(merged, sort_keys=False).encode())
    except OSError as error:
        raise click.ClickException(f"{target} was not changed: {error}") from None
    click.echo(f"context {name} is in {target} and current")


def _default_target() -> Path:
    listed = os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
    return Path(listed) if listed else Path.home() / ".kube" / "config"


def _load(path: Path) -> dict[str, Any]:
    import yaml

    if not path.exists():
        return {}
    try:
        found = yaml.safe_load(path.read_text())
    except (yaml.YAMLError, OSError, ValueError, RecursionError) as error:
        raise click.ClickException(f"{path} cannot be read: {' '.join(str(error).split())}") from None
    if found is not None and not isinstance(found, dict):
        raise click.ClickException(f"{path} is no kubeconfig")
    return found or {}


def merge(config: dict[str, Any], admin: dict[str, Any], name: str) -> dict[str, Any]:
    """`config` with the one cluster, user and context of `admin` under `name`, in place of older ones of that name."""
    merged = {"apiVersion": "v1", "kind": "Config", **config, "current-context": name}
    entries = {
        "clusters": {"name": name, "cluster": admin["clusters"][0]["cluster"]},
        "users": {"name": name, "user": admin["users"][0]["user"]},
        "contexts": {"name": name, "context": {"cluster": name, "user": name}},
    }
    for key in _LISTS:
        others = [each for each in merged.get(key) or [] if each.get("name") != name]
        merged[key] = [*others, entries[key]]
    return merged

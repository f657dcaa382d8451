"""The context of a server in the user's kubeconfigs: adding, finding and removing it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click

from steersman.cli.paths import absolute
from steersman.machinery.private_files import make_folders, write_whole

_LISTS: Final = ("clusters", "users", "contexts")


def own_file(folder: Path) -> Path:
    """Return the administrator's kubeconfig in the server's folder."""
    return folder / "admin.kubeconfig"


def files_of_kubectl() -> list[Path]:
    """Return the kubeconfigs that kubectl reads: the files in $KUBECONFIG, or `~/.kube/config`."""
    listed = [absolute(each) for each in os.environ.get("KUBECONFIG", "").split(os.pathsep) if each]
    return listed or [file_at_home()]


def file_at_home() -> Path:
    """Return `~/.kube/config`."""
    return absolute(Path.home() / ".kube" / "config")


def load(path: Path) -> dict[str, Any]:
    """Return the content of a kubeconfig, {} if it does not exist. Raises ClickException."""
    from steersman.machinery.codec.yaml_files import YAMLFileError, read_documents

    if not path.exists():
        return {}
    try:
        documents = read_documents(path)
    except YAMLFileError as error:
        raise click.ClickException(str(error)) from None
    found = documents[0] if documents else None
    if len(documents) > 1 or not isinstance(found, dict | None):
        raise click.ClickException(f"{path} is not a kubeconfig")
    return found or {}


def store(path: Path, config: dict[str, Any]) -> None:
    """Write a kubeconfig; for a symbolic link its target is written. Raises ClickException."""
    import yaml

    try:
        target = Path(os.path.realpath(path))
        make_folders(target.parent)
        write_whole(target, yaml.safe_dump(config, sort_keys=False).encode())
    except OSError as error:
        raise click.ClickException(f"{path} was not changed: {error}") from None


def merge(config: dict[str, Any], admin: dict[str, Any], name: str) -> dict[str, Any]:
    """Return `config` with the cluster, user and context of `admin` as `name`, replacing older entries of that name."""
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


def replaced_server(config: dict[str, Any], admin: dict[str, Any], name: str) -> str:
    """Return the address of the other server to which context `name` of `config` refers, or "".

    `admin` is the kubeconfig that will replace it. Raises KeyError, TypeError or AttributeError for an invalid
    kubeconfig.
    """
    contexts = [each["context"] for each in config.get("contexts") or [] if each.get("name") == name]
    names = {each.get("cluster") for each in contexts}
    before = [each["cluster"] for each in config.get("clusters") or [] if each.get("name") in names]
    server = admin["clusters"][0]["cluster"]
    return next(
        (
            each.get("server", "")
            for each in before
            if each.get(_identity_key(server)) != server.get(_identity_key(server))
        ),
        "",
    )


def _identity_key(server: dict[str, Any]) -> str:
    """Return the member that identifies a server: its CA, which is unique per folder, or else its address."""
    return "certificate-authority-data" if "certificate-authority-data" in server else "server"


def remove_contexts(folder: Path) -> Iterator[tuple[str, Path]]:
    """Remove the contexts of a folder's server from the user's kubeconfigs, with their clusters and users.

    Yields (name, file) of each removed context. Files that cannot be read or written are skipped.
    """
    own = own_file(folder)
    try:
        server = load(own)["clusters"][0]["cluster"]
    except (click.ClickException, KeyError, IndexError, TypeError):
        return
    for path in dict.fromkeys([*files_of_kubectl(), file_at_home()]):
        if os.path.realpath(path) == os.path.realpath(own) or not path.is_file():
            continue
        try:
            config, names = without(load(path), server)
            if names:
                store(path, config)
        except (click.ClickException, KeyError, TypeError, AttributeError):
            continue
        for name in names:
            yield name, path


def without(config: dict[str, Any], server: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return a kubeconfig without the contexts of a server, and the names of the removed contexts."""
    known = _identity_key(server)
    dead = {each["name"] for each in config.get("clusters") or [] if each["cluster"].get(known) == server.get(known)}
    contexts = config.get("contexts") or []
    names = [each["name"] for each in contexts if each["context"].get("cluster") in dead]
    if not dead:
        return config, []
    kept = [each for each in contexts if each["name"] not in names]
    used = {each["context"].get("user") for each in kept}
    users = {each["context"].get("user") for each in contexts if each["name"] in names} - used
    left = {
        **config,
        "clusters": [each for each in config.get("clusters") or [] if each["name"] not in dead],
        "users": [each for each in config.get("users") or [] if each["name"] not in users],
        "contexts": kept,
    }
    if config.get("current-context") in names:
        left["current-context"] = ""
    return left, names

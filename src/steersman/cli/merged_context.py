"""The context of a server in kubeconfigs of its user: put in, found again, and taken out."""

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
    """Return the administrator's kubeconfig of the server of a folder."""
    return folder / "admin.kubeconfig"


def files_of_kubectl() -> list[Path]:
    """Return the kubeconfigs that kubectl reads: those of $KUBECONFIG, or the one at home."""
    listed = [absolute(each) for each in os.environ.get("KUBECONFIG", "").split(os.pathsep) if each]
    return listed or [file_at_home()]


def file_at_home() -> Path:
    """Return `~/.kube/config`."""
    return absolute(Path.home() / ".kube" / "config")


def load(path: Path) -> dict[str, Any]:
    """Return what a kubeconfig says, nothing if there is none. Raises ClickException."""
    from steersman.machinery.codec.yaml_files import YAMLFileError, read_documents

    if not path.exists():
        return {}
    try:
        documents = read_documents(path)
    except YAMLFileError as error:
        raise click.ClickException(str(error)) from None
    found = documents[0] if documents else None
    if len(documents) > 1 or not isinstance(found, dict | None):
        raise click.ClickException(f"{path} is no kubeconfig")
    return found or {}


def store(path: Path, config: dict[str, Any]) -> None:
    """Write a kubeconfig; a link stays one, and what it points at is changed. Raises ClickException."""
    import yaml

    try:
        place = Path(os.path.realpath(path))
        make_folders(place.parent)
        write_whole(place, yaml.safe_dump(config, sort_keys=False).encode())
    except OSError as error:
        raise click.ClickException(f"{path} was not changed: {error}") from None


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


def replaced_server(config: dict[str, Any], admin: dict[str, Any], name: str) -> str:
    """Return the address of another server to which the context `name` of `config` leads, "" if there is none.

    `admin` has the server that is to be put in its place. Raises KeyError, TypeError, AttributeError for what is no
    kubeconfig.
    """
    contexts = [each["context"] for each in config.get("contexts") or [] if each.get("name") == name]
    names = {each.get("cluster") for each in contexts}
    before = [each["cluster"] for each in config.get("clusters") or [] if each.get("name") in names]
    server = admin["clusters"][0]["cluster"]
    return next(
        (each.get("server", "") for each in before if each.get(_known(server)) != server.get(_known(server))), ""
    )


def _known(server: dict[str, Any]) -> str:
    """Return the member by which a server is known: its authority, which no other folder has, wherever it listened
    before; without one its address."""
    return "certificate-authority-data" if "certificate-authority-data" in server else "server"


def take_out(folder: Path) -> Iterator[tuple[str, Path]]:
    """Take the contexts that lead to the server of a folder out of its user's kubeconfigs, with their clusters and
    users. Give the name and the file of each; a file that cannot be read or written stays as it is, without an error.
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
    """Return a kubeconfig without the contexts of a server, and their names."""
    known = _known(server)
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

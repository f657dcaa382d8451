"""CustomResourceDefinitions for a test: read from files, applied, and waited for."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from errno import ENOENT
from pathlib import Path
from typing import Any, Final

from steersman.machinery.codec.yaml import json_as_yaml
from steersman.machinery.codec.yaml_files import YAMLFileError, read_documents
from steersman.testing.blocking_client import BlockingClient

DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_SUFFIXES: Final = (".yaml", ".yml", ".json")
_BETWEEN_LOOKS: Final = 0.005
_APPLY: Final = {"Content-Type": "application/apply-patch+yaml"}


class NotEstablished(Exception):
    """The server refused a definition, or the definition was not Established in time.

    The text has its name and the reason.
    """


def read(paths: Iterable[str | Path]) -> list[dict[str, Any]]:
    """Return the CustomResourceDefinitions in YAML or JSON files, and in the files of folders (not of subfolders).

    Other documents are skipped. Raises OSError, and ValueError for an unreadable file or a path without any definition.
    """
    definitions = []
    for path in map(Path, paths):
        if not path.exists():
            raise FileNotFoundError(ENOENT, "there are no CustomResourceDefinitions, as it is not there", str(path))
        here = [each for file in _files(path) for each in _documents(file)]
        if not here:
            raise ValueError(f"{path} holds no CustomResourceDefinition")
        definitions += here
    return definitions


def _files(path: Path) -> list[Path]:
    return sorted(each for each in path.iterdir() if each.suffix in _SUFFIXES) if path.is_dir() else [path]


def _documents(file: Path) -> Iterator[dict[str, Any]]:
    try:
        documents = read_documents(file)
    except YAMLFileError as error:
        raise ValueError(str(error)) from None
    for each in documents:
        if isinstance(each, dict) and each.get("kind") == "CustomResourceDefinition":
            yield each


def establish(client: BlockingClient, definitions: Iterable[dict[str, Any]], timeout: float = 10.0) -> None:
    """Apply definitions, then wait until each is Established, at most `timeout` seconds for all of them.

    Raises NotEstablished, OSError.
    """
    names = [_apply(client, each) for each in definitions]
    until = time.monotonic() + timeout
    for name in names:
        while (why := _missing_condition(client, name)) and time.monotonic() < until:
            time.sleep(_BETWEEN_LOOKS)
        if why:
            raise NotEstablished(f"{name}: not established after {timeout:g} s: {why}")


def _apply(client: BlockingClient, definition: dict[str, Any]) -> str:
    name = str((definition.get("metadata") or {}).get("name", ""))
    body = {key: value for key, value in definition.items() if key != "status"}
    target = f"{DEFINITIONS}/{name}?fieldManager=steersman&force=true"
    status, answer = client.request("PATCH", target, json_as_yaml(body), _APPLY)
    if status not in (200, 201):
        raise NotEstablished(f"{name}: {status} {json.loads(answer).get('message', '')}")
    return name


def _missing_condition(client: BlockingClient, name: str) -> str:
    """Return the reason why a definition is not Established yet; "" once it is."""
    status, definition = client.json("GET", f"{DEFINITIONS}/{name}")
    if status != 200:
        return str(definition.get("message", status))
    conditions = {each["type"]: each for each in definition.get("status", {}).get("conditions") or ()}
    if conditions.get("Established", {}).get("status") == "True":
        return ""
    told = [f"{kind} is {each['status']}: {each.get('message', '')}" for kind, each in conditions.items()]
    return "; ".join(told) or "it has no conditions"

"""Initial objects of a cluster, from files and folders of manifests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.discovery import preferred_resources
from steersman.cluster.configuration import ConfigurationError
from steersman.machinery.errors.status import StatusError
from steersman.machinery.suggestions import did_you_mean

SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})
_MAKE_KINDS: Final = frozenset({"CustomResourceDefinition", "APIService"})
"""Kinds of objects that define further kinds."""
_PATIENCE: Final = 30.0
"""Seconds to wait until the kind of an object is served."""
_AGAIN: Final = 0.05
"""Seconds between two checks whether it is."""

Manifest = dict[str, Any]


def read_manifests(paths: Iterable[Path]) -> list[tuple[Path, Manifest]]:
    """Return every object in the files and in the files of folders, in order. Raises ConfigurationError."""
    found: list[tuple[Path, Manifest]] = []
    for path in paths:
        files = sorted(each for each in path.rglob("*") if each.suffix in SUFFIXES) if path.is_dir() else [path]
        for file in files:
            for each in documents_of(file):
                found += [(file, one) for one in _objects(file, each)]
    return found


def documents_of(file: Path) -> list[Any]:
    """Return the documents of a YAML or JSON file. Raises ConfigurationError."""
    from steersman.machinery.codec.yaml_files import YAMLFileError, read_documents

    try:
        return read_documents(file)
    except YAMLFileError as error:
        raise ConfigurationError(str(error)) from None


def _objects(file: Path, document: Any) -> Iterator[Manifest]:
    if document is None:
        return
    if not isinstance(document, dict) or not document.get("kind") or not document.get("apiVersion"):
        raise ConfigurationError(f"{file}: an object says its kind and apiVersion")
    if document["kind"] == "List":
        for each in document.get("items") or ():
            yield from _objects(file, each)
        return
    if not isinstance(document.get("metadata"), dict) or not document["metadata"].get("name"):
        raise ConfigurationError(f"{file}: {document['kind']} has no name")
    yield document


async def apply_manifests(client: Client, manifests: Iterable[tuple[Path, Manifest]]) -> None:
    """Apply objects in order. Raises ConfigurationError for an object that the server refuses.

    If one of the objects may define further kinds, an object whose kind is not served yet is waited for.
    """
    resources: dict[tuple[str, str], APIResource[Any]] = {}
    manifests = list(manifests)
    more_is_coming = any(manifest["kind"] in _MAKE_KINDS for _, manifest in manifests)
    for file, manifest in manifests:
        metadata = manifest["metadata"]
        named = f"{manifest['kind']} {metadata['name']}"
        try:
            async with asyncio.timeout(_PATIENCE):
                resource = await _resource(client, resources, manifest, waits=more_is_coming)
                namespace = (metadata.get("namespace") or "default") if resource.namespaced else ""
                await client.apply(resource, metadata["name"], namespace, manifest)
        except (TimeoutError, LookupError):
            why = f"no such kind is served in {manifest['apiVersion']}"
            hint = did_you_mean(str(manifest["kind"]), {kind for _, kind in resources})
            raise ConfigurationError(f"{file}: {named}: {why}{hint}") from None
        except StatusError as error:
            raise ConfigurationError(f"{file}: {named}: {error}") from None


async def _resource(
    client: Client, known: dict[tuple[str, str], APIResource[Any]], manifest: Manifest, *, waits: bool
) -> APIResource[Any]:
    """Return the resource of a manifest's kind. With `waits`, wait until it is served. Raises LookupError."""
    api_version, kind = str(manifest["apiVersion"]), str(manifest["kind"])
    group, _, version = api_version.rpartition("/")
    while (found := known.get((group, kind))) is None:
        for each in (await preferred_resources(client)).served:
            known[each.resource.group, each.resource.kind] = each.resource
        if (group, kind) not in known:
            if not waits:
                raise LookupError(kind)
            await asyncio.sleep(_AGAIN)
    return APIResource(group, version, found.plural, kind, dict, found.namespaced)

"""CustomResourceDefinitions that a cluster has from the start: their form and their installation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.errors import is_not_found
from steersman.machinery.errors.status import StatusError
from steersman.machinery.go.strings import to_lower

_DEFINITIONS: Final[APIResource[dict[str, Any]]] = APIResource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", dict, namespaced=False
)
_AGAIN: Final = 0.01
"""Seconds between two checks if the objects are served."""
PATIENCE: Final = 10.0
"""Seconds until which the objects must be served."""


Plain = dict[str, Any]


class NotServed(Exception):
    """The definitions are there, and their objects are not served."""


def manifest(
    group: str,
    version: str,
    kind: str,
    plural: str,
    schema: Plain,
    *,
    namespaced: bool = False,
    scale: Plain | None = None,
    columns: Sequence[Plain] = (),
) -> Plain:
    """Return the manifest of a definition with one version, a status subresource, and `scale` if that is given."""
    scaled = {} if scale is None else {"scale": scale}
    described = {
        "name": version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}, **scaled},
        "schema": {"openAPIV3Schema": schema},
    }
    if columns:
        described["additionalPrinterColumns"] = list(columns)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced" if namespaced else "Cluster",
            "names": {"plural": plural, "singular": to_lower(kind), "kind": kind, "listKind": f"{kind}List"},
            "versions": [described],
        },
    }


async def install(client: Client, definitions: Sequence[Plain]) -> None:
    """Apply definitions of one version each that are not in effect, and return once their objects are served.

    Raises StatusError, Unreachable; NotServed if another definition has the names, for example.
    """
    in_effect = await asyncio.gather(*(_is_in_effect(client, each) for each in definitions))
    missing = [each for each, done in zip(definitions, in_effect, strict=True) if not done]
    await asyncio.gather(*(client.apply(_DEFINITIONS, each["metadata"]["name"], "", each) for each in missing))
    try:
        async with asyncio.timeout(PATIENCE):
            for each in missing:
                while True:
                    if await _is_served(client, _resource(each["spec"])):
                        break
                    await asyncio.sleep(_AGAIN)
    except TimeoutError:
        raise NotServed(f"{each['metadata']['name']} is not served after {PATIENCE:.0f} s") from None


async def _is_in_effect(client: Client, definition: Plain) -> bool:
    """Return True if this definition is stored, and its objects are served."""
    found = await client.find(_DEFINITIONS, definition["metadata"]["name"])
    if found is None or "deletionTimestamp" in found["metadata"] or found["spec"] != stored_spec(definition):
        return False
    conditions = {each["type"]: each["status"] for each in found.get("status", {}).get("conditions", ())}
    return conditions.get("NamesAccepted") == conditions.get("Established") == "True"


def stored_spec(definition: Plain) -> Plain:
    """Return the spec of a manifest with the server's defaults."""
    return {**definition["spec"], "conversion": {"strategy": "None"}}


def _resource(spec: Plain) -> APIResource[Any]:
    names = spec["names"]
    return APIResource(spec["group"], spec["versions"][0]["name"], names["plural"], names["kind"], dict)


async def _is_served(client: Client, resource: APIResource[Any]) -> bool:
    try:
        await client.list(resource, limit=1)
    except StatusError as error:
        if not is_not_found(error):
            raise
        return False
    return True

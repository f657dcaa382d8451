"""The published documents of the built-in resources, compared byte by byte by recorded digests."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import orjson
import pytest

RECORDED = json.loads(Path(__file__).with_name("recorded_digests.json").read_text())
"""By configuration: the flag, and the SHA-256 of each document without descriptions of parameters."""


def without_descriptions(document: dict[str, Any]) -> Any:
    """Without those of query parameters, and of the parameters that operations of v2 share."""
    for parameter in document.get("parameters", {}).values():
        parameter.pop("description", None)
    return without_query_descriptions(document)


def without_query_descriptions(value: Any) -> Any:
    if isinstance(value, list):
        return [without_query_descriptions(each) for each in value]
    if not isinstance(value, dict):
        return value
    is_parameter = value.get("in") == "query" and isinstance(value.get("name"), str)
    return {
        name: without_query_descriptions(each)
        for name, each in value.items()
        if not (is_parameter and name == "description")
    }


def digest(document: bytes) -> str:
    """Return the digest of a document, independent of the order of keys."""
    plain = without_descriptions(orjson.loads(document))
    return hashlib.sha256(orjson.dumps(plain, option=orjson.OPT_SORT_KEYS)).hexdigest()


@pytest.mark.parametrize("configuration", RECORDED)
async def test_documents_of_built_in_resources_are_what_they_were(
    start_control_plane: Any, client_of: Any, configuration: str
) -> None:
    recorded = RECORDED[configuration]
    client = client_of(await start_control_plane(runtime_config=recorded["runtime_config"]))
    index = (await client.get("/openapi/v3")).json()["paths"]
    found = {name: digest((await client.get(f"/openapi/v3/{name}")).body) for name in index}
    found["v2"] = digest((await client.get("/openapi/v2")).body)
    assert found == recorded["documents"]

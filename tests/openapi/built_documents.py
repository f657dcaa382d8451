"""The documents of every built-in resource, as the builder makes them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import orjson

from steersman.controlplane import on_request
from steersman.controlplane.resources import AGGREGATOR, API_EXTENSIONS, KUBE_API
from steersman.endpoints.discovery import ServedResource, served_versions
from steersman.openapi.builder import (
    V2_ENDS,
    Document,
    group_document,
    group_version_document,
    path_documents,
    root_documents,
)
from steersman.openapi.fragments import joined, members_v2, merged
from steersman.openapi.schemas import Schemas
from steersman.rest.resource import Resource

DEFAULT = (*KUBE_API, *API_EXTENSIONS, *AGGREGATOR)
EVERYTHING = (*on_request.kube_api(lambda *_: True), *API_EXTENSIONS, *AGGREGATOR)


def documents_of(resources: Iterable[Resource[Any]]) -> dict[str, Document]:
    """Return the documents of a server with these resources in all their versions, by name."""
    served: dict[tuple[str, str], list[ServedResource]] = {}
    for each in (found for resource in resources for found in served_versions(resource)):
        served.setdefault((each.group, each.version), []).append(each)
    groups = {group for group, _ in served if group}
    found = [*root_documents(), *path_documents(), *map(group_document, sorted(groups))]
    found += [group_version_document(*key, served[key]) for key in served]
    return {each.name: each for each in found}


@cache
def every_v3() -> dict[str, Any]:
    """Every v3 document of everything there is, by name. Nobody may change them."""
    return {name: document.build() for name, document in documents_of(EVERYTHING).items()}


@cache
def v2(*, everything: bool = False) -> Any:
    """Return the v2 document of the resources that are served by default, or of all. It must not be modified."""
    shared = Schemas()
    documents = documents_of(EVERYTHING if everything else DEFAULT)
    return orjson.loads(joined(members_v2(merged([each.fragments(shared) for each in documents.values()]), V2_ENDS)))

"""Type checking of one policy's expressions against the served kinds (see `policy_status`).

The module is slow to import, as the expression compiler is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from steersman.admission_rules.type_checking import TypedKind, check
from steersman.api.admissionregistration.v1 import ExpressionWarning, ParamKind, ValidatingAdmissionPolicySpec
from steersman.catalogue.catalogue import Catalogue
from steersman.catalogue.kinds_for import ListedVersion, ResourceKinds, listed_versions
from steersman.endpoints.discovery import ServedResource
from steersman.endpoints.scope import root_of
from steersman.machinery.identity.schema import GroupVersionError, GroupVersionKind, parse_group_version
from steersman.openapi.kind_schemas import KindSchema, built_in_schema, document_schema, served_schema
from steersman.work.offloading import offload_if

LIMIT: Final = 3 << 20
"""Limit of all warnings of a policy in bytes: a larger status cannot be stored."""

FetchDocument = Callable[[str], Awaitable[bytes | None]]
"""Function that returns the OpenAPI v3 document of another server by name, e.g. "apis/example.com/v1", or None."""


class TypeChecker:
    """Checker of policies, one at a time, in worker threads; caches a digest of discovery until the catalogue
    changes.
    """

    def __init__(self, catalogue: Catalogue, fetch: FetchDocument) -> None:
        self._catalogue: Final = catalogue
        self._fetch: Final = fetch
        self._resources: tuple[int, ResourceKinds] | None = None

    async def check(self, spec: ValidatingAdmissionPolicySpec) -> list[ExpressionWarning]:
        """Return the warnings for a policy. Raises TooMuchToSay."""
        rules = spec.match_constraints.resource_rules if spec.match_constraints is not None else []
        resources = await self._resource_kinds()
        gvks = await offload_if(True, resources.kinds_for, rules)
        found = [await self._typed(each) for each in gvks]
        kinds = [each for each in found if each is not None]
        params = None if not kinds or spec.param_kind is None else await self._params(spec.param_kind)
        return await offload_if(True, check, spec, kinds, params, limit=LIMIT)

    async def _resource_kinds(self) -> ResourceKinds:
        revision = self._catalogue.revision
        if self._resources is None or self._resources[0] != revision:
            self._resources = revision, await offload_if(True, _resource_kinds, listed_versions(self._catalogue))
        return self._resources[1]

    async def _params(self, kind: ParamKind) -> TypedKind | None:
        try:
            group, version = parse_group_version(kind.api_version)
        except GroupVersionError:
            return None
        return await self._typed(GroupVersionKind(group, version, kind.kind))

    async def _typed(self, gvk: GroupVersionKind) -> TypedKind | None:
        """Return a kind with its schema, None if it is unknown."""
        schema = await offload_if(True, _known_here, gvk, self._catalogue.resources(gvk.group, gvk.version))
        if schema is None:
            data = await self._fetch(root_of(gvk.group, gvk.version).removeprefix("/"))
            schema = None if data is None else await offload_if(True, document_schema, data, gvk)
        return None if schema is None else TypedKind(gvk, schema.schema, schema.schema_of, schema.reference)


def _resource_kinds(versions: list[ListedVersion]) -> ResourceKinds:
    return ResourceKinds(versions)


def _known_here(gvk: GroupVersionKind, resources: list[ServedResource]) -> KindSchema | None:
    built_in = built_in_schema(gvk)
    if built_in is not None:
        return built_in
    return next((schema for each in resources if (schema := served_schema(each, gvk)) is not None), None)

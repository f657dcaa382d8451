"""Resources of the kinds that stages name (apimachinery RESTMapper)."""

from __future__ import annotations

from typing import Final, TypedDict

from steersman.client.client import Client, checked
from steersman.client.errors import ignoring, is_not_found
from steersman.machinery.go.strings import to_lower
from steersman.nodes.stages.open_objects import OpenResource, open_resource

_WATCHED: Final = frozenset({"get", "list", "watch"})


class _ResourceShape(TypedDict, total=False):
    name: str
    singularName: str
    namespaced: bool
    kind: str
    verbs: list[str] | None


class _ListShape(TypedDict, total=False):
    """Members of an APIResourceList that are read."""

    resources: list[_ResourceShape] | None


async def resource_of(client: Client, api_version: str, kind: str, *, watched: bool = False) -> OpenResource | None:
    """Return the resource of a kind, None if the server has none that can be read, with `watched` also watched.

    `kind` may also be the name of the resource, as in kwok. Raises StatusError, Unreachable.
    """
    group, _, version = api_version.rpartition("/")
    probe = open_resource(group, version, "", "", namespaced=False)
    found: _ListShape = {}
    with ignoring(is_not_found):
        found = checked(await client.get_plain(probe.path().rstrip("/")), _ListShape)
    lowered = to_lower(kind)
    for each in found.get("resources") or ():
        name, verbs = each.get("name", ""), frozenset(each.get("verbs") or ())
        if "/" in name or "get" not in verbs or (watched and not verbs >= _WATCHED):
            continue
        if kind == each.get("kind") or lowered in (name, each.get("singularName")):
            return open_resource(group, version, name, each.get("kind", ""), namespaced=bool(each.get("namespaced")))
    return None

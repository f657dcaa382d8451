"""Query parameters of the verbs as options (meta/v1 CreateOptions, ListOptions...), checked as upstream checks them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any, Final, TypeVar

from steersman.api.meta import v1 as meta
from steersman.api.meta.v1 import CreateOptions, DeleteOptions, PatchOptions, UpdateOptions
from steersman.endpoints.query import Query, parse_query, truthy
from steersman.endpoints.request import Request
from steersman.endpoints.scope import Scope
from steersman.machinery.errors.field import FieldError, quote
from steersman.machinery.errors.go_numbers import parse_int
from steersman.machinery.errors.status import bad_request, invalid
from steersman.machinery.identity.schema import GroupKind
from steersman.machinery.large_work.slow_lane import done
from steersman.machinery.selectors import fields, labels
from steersman.machinery.validation.options import (
    validate_delete_options,
    validate_list_options,
    validate_patch_options,
    validate_write_options,
)
from steersman.rest.capabilities import ListOptions
from steersman.rest.resource import Resource

_LONG: Final = 4 << 10
"""Characters of a query with more terms than are read in a few milliseconds."""

_SHORT: Final = 512
_KEPT: Final = 256
"""Characters of a query whose options are kept, and how many are."""

A = TypeVar("A")
T = TypeVar("T")
W = TypeVar("W", CreateOptions, UpdateOptions)


def _refuse(kind: str, found: Iterable[FieldError]) -> None:
    if errors := list(found):
        raise invalid(GroupKind("meta.k8s.io", kind), "", errors)


def create_options(request: Request) -> CreateOptions:
    """The options of a create, not to be changed. Raises StatusError 422."""
    return _read_once(_write_options, CreateOptions, request)


def update_options(request: Request) -> UpdateOptions:
    """The options of an update, not to be changed. Raises StatusError 422."""
    return _read_once(_write_options, UpdateOptions, request)


def patch_options(request: Request) -> PatchOptions:
    """The options of a patch other than an apply, not to be changed. Raises StatusError 422."""
    return _read_once(_patch_options, False, request)


def apply_options(request: Request) -> PatchOptions:
    """The options of a server-side apply, not to be changed. Raises StatusError 422."""
    return _read_once(_patch_options, True, request)


def _read_once(read: Callable[[A, str], T], of: A, request: Request) -> T:
    """What a query says, read once for all requests that say the same; long ones are not kept."""
    text = request.http.query
    return _kept(read, of, text) if len(text) < _SHORT else read(of, text)


@lru_cache(_KEPT)
def _kept(read: Callable[[A, str], T], of: A, text: str) -> T:
    return read(of, text)


def _write_options(kind: type[W], text: str) -> W:
    options = kind()
    _read_write_options(options, parse_query(text))
    _refuse(kind.__name__, validate_write_options(options))
    return options


def _patch_options(apply: bool, text: str) -> PatchOptions:
    options, query = PatchOptions(), parse_query(text)
    _read_write_options(options, query)
    if "force" in query:
        options.force = truthy(query["force"])
    _refuse("PatchOptions", validate_patch_options(options, apply=apply))
    return options


def _read_write_options(options: CreateOptions | UpdateOptions | PatchOptions, query: Query) -> None:
    if "dryRun" in query:
        options.dry_run = query.get_all("dryRun")
    options.field_manager = query.get("fieldManager", "")
    options.field_validation = query.get("fieldValidation", "")


def delete_options_from_query(query: Query) -> DeleteOptions:
    """The DeleteOptions of a query. Raises StatusError 400, 422."""
    options = DeleteOptions()
    if not query:
        return options
    if "dryRun" in query:
        options.dry_run = query.get_all("dryRun")
    grace = query.get("gracePeriodSeconds")
    if grace:
        options.grace_period_seconds = _integer(grace)
    if "orphanDependents" in query:
        options.orphan_dependents = truthy(query["orphanDependents"])
    policy = query.get("propagationPolicy")
    if policy:
        options.propagation_policy = policy
    _refuse("DeleteOptions", validate_delete_options(options))
    return options


def _integer(text: str) -> int:
    try:
        return parse_int(text)
    except ValueError as error:
        raise bad_request(str(error)) from None


async def list_options(scope: Scope, request: Request, *, watching: bool) -> ListOptions:
    """The options of a list, watch or deletecollection; long selectors are read in the slow lane.

    Raises StatusError 400, 422.
    """
    lane = scope.lane(request) if len(request.http.query) > _LONG else None
    return await done(lane, partial(_list_options, scope, request, watching=watching))


def _list_options(scope: Scope, request: Request, *, watching: bool) -> ListOptions:
    query = request.query
    if not query and not request.action.name:
        return ListOptions(send_initial_events=None)
    options = ListOptions()
    options.resource_version = query.get("resourceVersion", "")
    options.resource_version_match = query.get("resourceVersionMatch", "")
    options.continue_token = query.get("continue", "")
    if query.get("limit"):
        options.limit = _integer(query["limit"])
    if query.get("timeoutSeconds"):
        options.timeout_seconds = _integer(query["timeoutSeconds"])
    options.allow_watch_bookmarks = truthy(query.get("allowWatchBookmarks"))
    if "sendInitialEvents" in query:
        options.send_initial_events = truthy(query["sendInitialEvents"])
    _parse_selectors(scope, options, query)
    checked = meta.ListOptions(
        watch=watching, resource_version=options.resource_version, continue_=options.continue_token,
        resource_version_match=options.resource_version_match, send_initial_events=options.send_initial_events,
    )  # fmt: skip
    _refuse("ListOptions", validate_list_options(checked))
    options.limit = max(options.limit, 0)
    name = request.action.name
    if name:
        _narrow_to_name(options, name)
    return options


def _parse_selectors(scope: Scope, options: ListOptions, query: Query) -> None:
    text = query.get("labelSelector")
    if text:
        try:
            options.label_selector = labels.parse(text)
        except labels.SelectorError as error:
            raise bad_request(str(error)) from None
    text = query.get("fieldSelector")
    if text:
        try:
            parsed = fields.parse(text)
        except fields.SelectorError as error:
            raise bad_request(str(error)) from None
        options.field_selector = parsed.transform(lambda field, value: (_known_field(scope, field), value))


def _known_field(scope: Scope, field: str) -> str:
    """The stored version's name of a selectable field. Raises StatusError 400."""
    resource = scope.resource
    if field == "metadata.name" or (field == "metadata.namespace" and _namespace_is_known(resource)):
        return field
    own = scope.selectable_fields
    if own is not None and field in own:
        return own[field]
    if own is None and field in resource.selectable_fields:
        return field
    if resource.unknown_field_label:
        raise bad_request(resource.unknown_field_label.format(field, scope.api_version))
    if resource.selectable_fields:
        raise bad_request(f"field label not supported: {field}")
    raise bad_request(f'{quote(field)} is not a known field selector: only "metadata.name", "metadata.namespace"')


def _namespace_is_known(resource: Resource[Any]) -> bool:
    """Upstream refuses it only for a cluster's own kinds that say themselves which fields there are."""
    return resource.namespaced or not (resource.selectable_fields or resource.unknown_field_label)


def _narrow_to_name(options: ListOptions, name: str) -> None:
    """A watch of one object by its path is a watch by its name; a selector beside it must be by that name, too."""
    if options.field_selector.empty:
        options.field_selector = fields.one_term_equal_selector("metadata.name", name)
    elif options.field_selector.requires_exact_match("metadata.name") != name:
        raise bad_request("fieldSelector metadata.name doesn't match requested name")

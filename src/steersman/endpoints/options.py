"""Options from query parameters (meta/v1 CreateOptions, ListOptions...), validated as upstream does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import chain
from typing import Any, Final, Generic, TypeVar

from steersman.api.meta import v1 as meta
from steersman.api.meta.v1 import CreateOptions, GetOptions, PatchOptions, TableOptions, UpdateOptions
from steersman.endpoints.parameters import decode_parameters
from steersman.endpoints.query import Query, parse_query, truthy
from steersman.endpoints.request import Request
from steersman.endpoints.scope import Scope
from steersman.machinery.errors.field import FieldError, quote
from steersman.machinery.errors.status import bad_request, invalid
from steersman.machinery.identity.schema import GroupKind
from steersman.machinery.selectors import fields, labels
from steersman.machinery.validation.options import (
    validate_list_options,
    validate_patch_options,
    validate_table_options,
    validate_write_options,
)
from steersman.rest.capabilities import ListOptions
from steersman.rest.resource import Resource
from steersman.work.offloading import offload_if

_SHORT: Final = 512
_KEPT: Final = 256
"""Limits of the cache of options: characters of a cached query, and number of entries."""

A = TypeVar("A")
T = TypeVar("T")
W = TypeVar("W", CreateOptions, UpdateOptions)


def refuse(kind: str, found: Iterable[FieldError]) -> None:
    """Raise StatusError 422 if there are errors; they are iterated only as far as the message lists them."""
    errors = iter(found)
    for first in errors:
        raise invalid(GroupKind("meta.k8s.io", kind), "", chain((first,), errors))


class OptionsOf(Generic[T]):
    """Cached reader of options from the query of a request; callers must not change the options.

    `none` are the options of an empty query, None if an empty query is invalid. A call raises StatusError 422. Equal
    queries share one result; long ones are not cached.
    """

    __slots__ = ("_of", "_read", "none")

    def __init__(self, read: Callable[[A, Query], T], of: A, none: T | None = None) -> None:
        self._read: Callable[[Any, Query], T] = read
        self._of = of
        self.none = none

    def __call__(self, request: Request) -> T:
        text = request.http.query
        return _read_cached(self._read, self._of, text) if len(text) < _SHORT else self._read(self._of, request.query)


@lru_cache(_KEPT)
def _read_cached(read: Callable[[A, Query], T], of: A, text: str) -> T:
    return read(of, parse_query(text))


def write_options(kind: type[W], query: Query) -> W:
    """Return the options of a create or update request. Raises StatusError 400 and 422."""
    options = decode_parameters(kind, query)
    refuse(kind.__name__, validate_write_options(options))
    return options


def _patch_options(apply: bool, query: Query) -> PatchOptions:
    options = decode_parameters(PatchOptions, query)
    refuse("PatchOptions", validate_patch_options(options, apply=apply))
    return options


create_options: Final = OptionsOf(write_options, CreateOptions, CreateOptions())
update_options: Final = OptionsOf(write_options, UpdateOptions, UpdateOptions())
patch_options: Final = OptionsOf(_patch_options, False, PatchOptions())
"""Options of a patch other than an apply."""
apply_options: Final = OptionsOf(_patch_options, True)


def get_options(request: Request) -> GetOptions:
    """Return the options of a get. Raises StatusError 400 for an export, which is no longer supported."""
    query = request.query
    if query and truthy(query.get("export")):
        raise bad_request("the export parameter, deprecated since v1.14, is no longer supported")
    return decode_parameters(GetOptions, query)


def table_options(request: Request) -> TableOptions:
    """Return the options of a Table. Raises StatusError 400."""
    options = decode_parameters(TableOptions, request.query)
    for error in validate_table_options(options):
        raise bad_request(f"Unable to convert to Table as requested: {error}")
    return options


async def list_options(scope: Scope, request: Request) -> ListOptions:
    """Return the options of a list, watch or deletecollection; long selectors are parsed in a worker thread.

    Raises StatusError 400 and 422.
    """
    if request.has_long_query:
        return await offload_if(True, _list_options, scope, request)
    return _list_options(scope, request)


def _list_options(scope: Scope, request: Request) -> ListOptions:
    query, name = request.query, request.action.name
    if not query and not name:
        return ListOptions()
    given = decode_parameters(meta.ListOptions, query)
    try:
        label_selector, field_selector = labels.parse(given.label_selector), fields.parse(given.field_selector)
    except (labels.SelectorError, fields.SelectorError) as error:
        raise bad_request(str(error)) from None
    _set_list_defaults(given)
    refuse("ListOptions", validate_list_options(given))
    if given.field_selector:
        field_selector = field_selector.transform(lambda field, value: (_known_field(scope, field), value))
    options = ListOptions(
        label_selector=label_selector,
        field_selector=field_selector,
        resource_version=given.resource_version,
        resource_version_match=given.resource_version_match,
        limit=max(given.limit, 0),
        continue_token=given.continue_,
        allow_watch_bookmarks=given.allow_watch_bookmarks,
        send_initial_events=given.send_initial_events,
        timeout_seconds=given.timeout_seconds,
    )
    if name:
        _narrow_to_name(options, name)
    return options


def _set_list_defaults(options: meta.ListOptions) -> None:
    """Turn a watch that begins with the existing objects in the old way into one with `sendInitialEvents`.

    As upstream, this depends on the parameter `watch`; a request by the old path `/watch/` alone has no such default.
    """
    if options.send_initial_events is not None or options.resource_version_match or not options.watch:
        return
    if options.resource_version in ("", "0"):
        options.send_initial_events = True
        options.resource_version_match = "NotOlderThan"


def _known_field(scope: Scope, field: str) -> str:
    """Return the storage's name of a selectable field. Raises StatusError 400."""
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
    """Return True if `metadata.namespace` can be selected: not for cluster-scoped kinds with their own list of
    fields.
    """
    return resource.namespaced or not (resource.selectable_fields or resource.unknown_field_label)


def _narrow_to_name(options: ListOptions, name: str) -> None:
    """Narrow a watch of one object by its path to its name. Raises StatusError 400 if a selector has another name."""
    if options.field_selector.empty:
        options.field_selector = fields.one_term_equal_selector("metadata.name", name)
    elif options.field_selector.requires_exact_match("metadata.name") != name:
        raise bad_request("fieldSelector metadata.name doesn't match requested name")

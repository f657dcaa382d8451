"""Events: reports about an object, which expire after a time. Both API groups serve the same stored objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from steersman.api.core.v1 import Event
from steersman.api.events.v1 import Event as NewEvent
from steersman.kinds.built_in import built_in
from steersman.machinery.conversion.events import from_core, to_core
from steersman.machinery.errors.field import FieldError, Path, invalid, required
from steersman.machinery.go.strings import to_lower, trim_space
from steersman.machinery.validation.formats import is_dns1123_subdomain, is_qualified_name
from steersman.machinery.validation.leaves import FIELD_IMMUTABLE, validate_with
from steersman.machinery.validation.object_meta import name_is_dns_subdomain, name_is_path_segment
from steersman.machinery.values.times import age, unix_now
from steersman.registry.core.event_fields import SELECTABLE_FIELDS
from steersman.registry.printing.go_struct import go_struct
from steersman.registry.services import Services
from steersman.rest.context import Context
from steersman.rest.resource import Column, OtherVersion, Resource
from steersman.rest.strategy import Strategy

MAX_SHORT_TEXT: Final = 128
"""The most bytes of reason, action and reporting instance in events of the new style."""
MAX_NOTE: Final = 1024

_NAMESPACE_MISMATCH: Final = "does not match event.namespace"
_UNSET: Final = "needs to be unset"


def _validate_common(event: Event, *, core: bool) -> Iterator[FieldError]:
    """Yield the errors of any event; `core` is True for a request through the core group."""
    own, involved = event.metadata.namespace, event.involved_object.namespace
    path = Path("involvedObject", "namespace")
    if event.event_time is None:
        expected = own if involved else ("" if own in ("", "default") else None)
        if involved != expected:
            yield invalid(path, involved, _NAMESPACE_MISMATCH)
    else:
        if not involved and own not in ("default", "kube-system"):
            yield invalid(path, involved, _NAMESPACE_MISMATCH)
        yield from _validate_new_members(event, Path("reportingComponent" if core else "reportingController"))
    yield from validate_with(is_dns1123_subdomain, own, Path("namespace"))


def _validate_new_members(event: Event, controller: Path) -> Iterator[FieldError]:
    """Yield the errors of members that an event with an `eventTime` must have."""
    if not event.reporting_component:
        yield required(controller)
    yield from validate_with(is_qualified_name, event.reporting_component, controller)
    for name, value in (
        ("reportingInstance", event.reporting_instance),
        ("action", event.action),
        ("reason", event.reason),
    ):
        if not value:
            yield required(Path(name))
        if len(value.encode()) > MAX_SHORT_TEXT:
            yield invalid(Path(name), "", f"can have at most {MAX_SHORT_TEXT} characters")
    if len(event.message.encode()) > MAX_NOTE:
        yield invalid(Path("message"), "", f"can have at most {MAX_NOTE} characters")


def _validate_series(event: Event) -> Iterator[FieldError]:
    series = event.series
    if series is None:
        return
    if series.count < 2:
        yield invalid(Path("series.count"), "", "should be at least 2")
    if series.last_observed_time is None:
        yield required(Path("series.lastObservedTime"))


def _validate_new_style(event: Event) -> Iterator[FieldError]:
    """Yield the additional errors of a new event in events.k8s.io."""
    for message in name_is_dns_subdomain(event.metadata.name, False) if event.metadata.name else ():
        yield invalid(Path("metadata", "name"), event.metadata.name, message)
    yield from _validate_series(event)
    if event.event_time is None:
        yield required(Path("eventTime"))
    if event.type not in ("Normal", "Warning"):
        yield invalid(Path("type"), "", f"has invalid value: {event.type}")
    for name, set_ in (
        ("firstTimestamp", event.first_timestamp is not None),
        ("lastTimestamp", event.last_timestamp is not None),
        ("count", event.count != 0),
        ("source", bool(event.source.component or event.source.host)),
    ):
        if set_:
            yield invalid(Path(name), "", _UNSET)


def _immutable(event: Event) -> Iterator[tuple[str, Any]]:
    """Yield name and value of each field that an update through events.k8s.io may not change."""
    yield "involvedObject", event.involved_object
    yield "reason", event.reason
    yield "message", event.message
    yield "source", event.source
    yield "firstTimestamp", event.first_timestamp
    yield "lastTimestamp", event.last_timestamp
    yield "count", event.count
    yield "reason", event.reason
    yield "type", event.type
    yield "eventTime", event.event_time
    yield "action", event.action
    yield "related", event.related
    yield "reportingController", event.reporting_component
    yield "reportingInstance", event.reporting_instance


_GO_NAMES: Final = {"uid": "UID", "api_version": "APIVersion"}


def _go_value(value: Any) -> Any:
    """Return `value` with the member names of upstream's internal types, for messages."""
    if not isinstance(value, msgspec.Struct):
        return value
    members = {
        _GO_NAMES.get(name, "".join(part.capitalize() for part in name.split("_"))): _go_value(getattr(value, name))
        for name in value.__struct_fields__
    }
    return go_struct(**members)


class EventStrategy(Strategy[Event]):
    allow_create_on_update = True
    metadata_on_update = "once"
    garbage_collection = "unsupported"

    def validates_metadata_last(self, ctx: Context) -> bool:
        return not ctx.action.group

    def validate(self, ctx: Context, obj: Event) -> Iterator[FieldError]:
        yield from _validate_common(obj, core=not ctx.action.group)
        if ctx.action.group:
            yield from _validate_new_style(obj)

    def validate_update(self, ctx: Context, new: Event, old: Event) -> Iterator[FieldError]:
        yield from _validate_common(new, core=not ctx.action.group)
        if not ctx.action.group:
            return
        if new.series != old.series:
            yield from _validate_series(new)
        for (name, after), (_, before) in zip(_immutable(new), _immutable(old), strict=True):
            if after != before:
                yield invalid(Path(name), _go_value(after), FIELD_IMMUTABLE)


def _source(event: Event) -> str:
    component = event.source.component or event.reporting_component
    host = event.source.host or event.reporting_instance
    return f"{component}, {host}" if host else component


def _first_seen(event: Event) -> str:
    return age(event.first_timestamp or event.event_time, unix_now())


def _last_seen(event: Event) -> str:
    if event.series is not None:
        return age(event.series.last_observed_time, unix_now())
    return age(event.last_timestamp, unix_now()) if event.last_timestamp else _first_seen(event)


def _count(event: Event) -> int:
    if event.series is not None:
        return event.series.count
    return event.count or 1


def _object(event: Event) -> str:
    kind = to_lower(event.involved_object.kind)
    return f"{kind}/{event.involved_object.name}" if event.involved_object.name else kind


def _ttl(services: Services) -> int:
    return services.event_ttl


EVENTS: Final = Resource(
    kind=built_in(Event),
    plural="events",
    short_names=("ev",),
    strategy=EventStrategy(),
    name_validator=name_is_path_segment,
    any_finalizers=True,
    name_column=False,
    columns=(
        Column("Last Seen", _last_seen),
        Column("Type", lambda e: e.type),
        Column("Reason", lambda e: e.reason),
        Column("Object", _object),
        Column("Subobject", lambda e: e.involved_object.field_path, priority=1),
        Column("Source", _source, priority=1),
        Column("Message", lambda e: trim_space(e.message)),
        Column("First Seen", _first_seen, priority=1),
        Column("Count", _count, priority=1),
        Column("Name", lambda e: e.metadata.name, priority=1, format="name"),
    ),
    selectable_fields={
        "involvedObject.kind": lambda e: e.involved_object.kind,
        "involvedObject.namespace": lambda e: e.involved_object.namespace,
        "involvedObject.name": lambda e: e.involved_object.name,
        "involvedObject.uid": lambda e: e.involved_object.uid,
        "involvedObject.apiVersion": lambda e: e.involved_object.api_version,
        "involvedObject.resourceVersion": lambda e: e.involved_object.resource_version,
        "involvedObject.fieldPath": lambda e: e.involved_object.field_path,
        "reason": lambda e: e.reason,
        "reportingComponent": lambda e: e.reporting_component,
        "source": lambda e: e.source.component or e.reporting_component,
        "type": lambda e: e.type,
    },
    literal_fields=frozenset(
        {
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        }
    ),
    other_versions=(
        OtherVersion(
            kind=built_in(NewEvent),
            to_hub=to_core,
            from_hub=from_core,
            short_names=("ev",),
            selectable_fields=SELECTABLE_FIELDS,
        ),
    ),
    storage_version_hash="r2yiGXH7wu8=",
    ttl=_ttl,
)

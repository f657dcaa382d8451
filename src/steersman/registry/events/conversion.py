"""Between events.k8s.io/v1 and core/v1 Events: the same objects, some members under another name."""

from __future__ import annotations

from typing import Final

from steersman.api.core.v1 import Event as CoreEvent
from steersman.api.core.v1 import EventSeries as CoreEventSeries
from steersman.api.events.v1 import Event, EventSeries

SELECTABLE_FIELDS: Final = {
    "reason": "reason",
    "regarding.kind": "involvedObject.kind",
    "regarding.namespace": "involvedObject.namespace",
    "regarding.name": "involvedObject.name",
    "regarding.uid": "involvedObject.uid",
    "regarding.apiVersion": "involvedObject.apiVersion",
    "regarding.resourceVersion": "involvedObject.resourceVersion",
    "regarding.fieldPath": "involvedObject.fieldPath",
    "reportingController": "reportingComponent",
    "type": "type",
}
"""Names of selectable fields here -> in core/v1."""


def to_core(event: Event) -> CoreEvent:
    """The event as the core group has it."""
    series = event.series and CoreEventSeries(
        count=event.series.count, last_observed_time=event.series.last_observed_time
    )
    return CoreEvent(
        kind=event.kind,
        metadata=event.metadata,
        involved_object=event.regarding,
        reason=event.reason,
        message=event.note,
        source=event.deprecated_source,
        first_timestamp=event.deprecated_first_timestamp,
        last_timestamp=event.deprecated_last_timestamp,
        count=event.deprecated_count,
        type=event.type,
        event_time=event.event_time,
        series=None
        if series is None
        else CoreEventSeries(count=series.count, last_observed_time=series.last_observed_time),
        action=event.action,
        related=event.related,
        reporting_component=event.reporting_controller,
        reporting_instance=event.reporting_instance,
    )


def from_core(event: CoreEvent) -> Event:
    """The event as events.k8s.io has it."""
    series = event.series and EventSeries(count=event.series.count, last_observed_time=event.series.last_observed_time)
    return Event(
        kind=event.kind,
        metadata=event.metadata,
        regarding=event.involved_object,
        reason=event.reason,
        note=event.message,
        deprecated_source=event.source,
        deprecated_first_timestamp=event.first_timestamp,
        deprecated_last_timestamp=event.last_timestamp,
        deprecated_count=event.count,
        type=event.type,
        event_time=event.event_time,
        series=None
        if series is None
        else EventSeries(count=series.count, last_observed_time=series.last_observed_time),
        action=event.action,
        related=event.related,
        reporting_controller=event.reporting_component,
        reporting_instance=event.reporting_instance,
    )

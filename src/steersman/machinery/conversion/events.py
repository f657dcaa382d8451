"""Conversion of Events between core/v1, the stored version, and events.k8s.io/v1."""

from __future__ import annotations

from steersman.api.core import v1 as core
from steersman.api.events import v1 as events


def to_core(event: events.Event) -> core.Event:
    """Convert an events.k8s.io/v1 Event to core/v1."""
    series = event.series
    return core.Event(
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
        else core.EventSeries(count=series.count, last_observed_time=series.last_observed_time),
        action=event.action,
        related=event.related,
        reporting_component=event.reporting_controller,
        reporting_instance=event.reporting_instance,
    )


def from_core(event: core.Event) -> events.Event:
    """Convert a core/v1 Event to events.k8s.io/v1."""
    series = event.series
    return events.Event(
        metadata=event.metadata,
        event_time=event.event_time,
        series=None
        if series is None
        else events.EventSeries(count=series.count, last_observed_time=series.last_observed_time),
        reporting_controller=event.reporting_component,
        reporting_instance=event.reporting_instance,
        action=event.action,
        reason=event.reason,
        regarding=event.involved_object,
        related=event.related,
        note=event.message,
        type=event.type,
        deprecated_source=event.source,
        deprecated_first_timestamp=event.first_timestamp,
        deprecated_last_timestamp=event.last_timestamp,
        deprecated_count=event.count,
    )

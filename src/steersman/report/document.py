"""A report as plain data, for programs."""

from __future__ import annotations

from typing import Any, Final

from steersman.report.report import Report
from steersman.report.tally import ClientCounts, ObjectKey, Target

_MOST: Final = 100
"""Objects, warnings and the like of a client that are told."""


def document(report: Report) -> dict[str, Any]:
    """Return a report as plain data."""
    return {
        "clients": [_client(report, each) for each in report.clients],
        "observations": [
            {"kind": each.kind, "client": each.client, "count": each.count, "message": each.message}
            for each in report.observations
        ],
        "dropped": report.dropped,
        "role": report.role(),
    }


def _client(report: Report, client: ClientCounts) -> dict[str, Any]:
    return {
        "userAgent": client.user_agent,
        "user": client.user,
        "requests": client.total,
        "writes": client.write_count,
        "watchedChanges": report.changes(client) if client.has_watched else None,
        "byTarget": [
            {**_target(target), "count": count, "failed": client.failed[target]}
            for target, count in client.requests.most_common()
        ],
        "codes": {str(code): count for code, count in sorted(client.codes.items())},
        "writtenObjects": [
            {**_object(key), "count": count, "unchanged": client.unchanged[key]}
            for key, count in client.writes.most_common(_MOST)
        ],
        "warnings": [{"text": text, "count": count} for text, count in client.warnings.most_common(_MOST)],
    }


def _target(target: Target) -> dict[str, str]:
    group, resource, verb = target
    return {"apiGroup": group, "resource": resource, "verb": verb}


def _object(key: ObjectKey) -> dict[str, str]:
    resource, namespace, name = key
    return {"resource": resource, "namespace": namespace, "name": name}

"""Metrics of the audit trail (k8s.io/apiserver `audit/metrics`)."""

from __future__ import annotations

from steersman.machinery.metrics import Counter, Registry


class AuditMetrics:
    """Counters of events, of requests by level, of lost events by plugin, and of requests rejected due to lost
    events.
    """

    def __init__(self, registry: Registry) -> None:
        self.events = Counter(
            "apiserver_audit_event_total",
            "[ALPHA] Counter of audit events generated and sent to the audit backend.",
        )
        self.errors = Counter(
            "apiserver_audit_error_total",
            "[ALPHA] Counter of audit events that failed to be audited properly. "
            "Plugin identifies the plugin affected by the error.",
            ("plugin",),
        )
        self.levels = Counter(
            "apiserver_audit_level_total",
            "[ALPHA] Counter of policy levels for audit events (1 per request).",
            ("level",),
        )
        self.rejected = Counter(
            "apiserver_audit_requests_rejected_total",
            "[ALPHA] Counter of apiserver requests rejected due to an error in audit logging backend.",
        )
        for each in (self.events, self.rejected):
            each.inc(by=0)
        registry.add(self.events, self.errors, self.levels, self.rejected)

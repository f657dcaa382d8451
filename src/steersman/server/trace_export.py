"""Export of traces by OTLP, with OpenTelemetry's SDK: imported only if traces are exported."""

from __future__ import annotations

import threading
from typing import Any, Final

from steersman.server.exported_spans import ExportedSpan, exported_spans
from steersman.tracing.sampling import Sampling
from steersman.tracing.trace import Trace
from steersman.work.extras import require

DEFAULT_ENDPOINT: Final = "localhost:4317"
LAST_SECONDS: Final = 5.0
"""Seconds for the last spans at the end of the server: a collector that hangs does not hold it up."""
_CHANNEL: Final = (("grpc.max_receive_message_length", 64 << 10), ("grpc.http2.bdp_probe", 0))
"""Options of the connection: collectors answer with a few bytes, and more is not taken into memory."""
_FEATURE: Final = "exported traces"
_SDK: Final = "opentelemetry-sdk"
_EXPORTER: Final = "opentelemetry-exporter-otlp-proto-grpc"
_EXTRA: Final = "tracing"


class TraceExport:
    """The reader of traces that exports the sampled ones in batches, from a thread of the SDK."""

    least_seconds = 0.0
    wants_all = False
    reads_spans = True
    reads_changes = False

    def __init__(self, endpoint: str, rate_per_million: int, instance: str) -> None:
        """`instance` identifies this server. Raises MissingExtra."""
        self._rate: Final = rate_per_million
        sdk = require("opentelemetry.sdk.trace", feature=_FEATURE, package=_SDK, extra=_EXTRA)
        export = require("opentelemetry.sdk.trace.export", feature=_FEATURE, package=_SDK, extra=_EXTRA)
        resources = require("opentelemetry.sdk.resources", feature=_FEATURE, package=_SDK, extra=_EXTRA)
        scope = require("opentelemetry.sdk.util.instrumentation", feature=_FEATURE, package=_SDK, extra=_EXTRA)
        otlp = require(
            "opentelemetry.exporter.otlp.proto.grpc.trace_exporter",
            feature=_FEATURE,
            package=_EXPORTER,
            extra=_EXTRA,
        )
        self._api: Final = require("opentelemetry.trace", feature=_FEATURE, package=_SDK, extra=_EXTRA)
        self._readable: Final = sdk.ReadableSpan
        self._event: Final = sdk.Event
        self._scope: Final = scope.InstrumentationScope
        self._resource: Final = resources.Resource({"service.name": "apiserver", "service.instance.id": instance})
        self._exporter: Final = otlp.OTLPSpanExporter(
            endpoint=endpoint or DEFAULT_ENDPOINT, insecure=True, channel_options=_CHANNEL
        )
        self._processor: Final = export.BatchSpanProcessor(self._exporter)

    def wants(self, trace: Trace) -> bool:
        """Draw the trace ids of a request; return True if a span of it may be sampled."""
        trace.sampling = sampling = Sampling(self._rate)
        return sampling.may_be_sampled(trace.propagated)

    def opened(self, trace: Trace) -> None:
        """Do nothing: a span is exported at its end."""

    def ended(self, trace: Trace) -> None:
        """Queue the sampled spans; what the queue has no room for is dropped by the SDK."""
        for each in exported_spans(trace):
            self._processor.on_end(self._span(each))

    def close(self) -> None:
        """Export what is queued, and end the thread; waits LAST_SECONDS for the collector."""
        end = threading.Timer(LAST_SECONDS, self._exporter.shutdown)
        end.start()
        try:
            self._processor.shutdown()
        finally:
            end.cancel()

    def _context(self, trace_id: int, span_id: int, state: str, *, sampled: bool, remote: bool) -> Any:
        api = self._api
        return api.SpanContext(
            trace_id,
            span_id,
            remote,
            api.TraceFlags(int(sampled)),
            api.TraceState.from_header([state] if state else []),
        )

    def _span(self, span: ExportedSpan) -> Any:
        api = self._api
        parent = None
        if span.parent_id:
            parent = self._context(span.trace_id, span.parent_id, span.state, sampled=True, remote=span.is_remote)
        return self._readable(
            name=span.name,
            context=self._context(span.trace_id, span.span_id, span.state, sampled=True, remote=False),
            parent=parent,
            resource=self._resource,
            attributes=span.attributes,
            events=[self._event(name, attributes=about, timestamp=at) for name, at, about in span.events],
            links=[
                api.Link(self._context(each.trace_id, each.span_id, each.state, sampled=each.sampled, remote=True))
                for each in span.links
            ],
            kind=api.SpanKind[span.kind],
            instrumentation_scope=self._scope(span.scope[0], span.scope[1] or None),
            status=api.Status(api.StatusCode.ERROR if span.failed else api.StatusCode.UNSET),
            start_time=span.start,
            end_time=span.end,
        )

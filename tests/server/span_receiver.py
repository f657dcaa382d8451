"""A collector of traces: it receives spans by OTLP over gRPC."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

_SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"


class Received:
    """Spans that have arrived, each with its `scope`, and the attributes of their resource."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.spans: list[dict[str, Any]] = []
        self.resource: dict[str, Any] = {}

    def take(self, request: ExportTraceServiceRequest, _: grpc.ServicerContext) -> ExportTraceServiceResponse:
        for of_resource in MessageToDict(request)["resourceSpans"]:
            self.resource = attributes(of_resource["resource"]["attributes"])
            for of_scope in of_resource["scopeSpans"]:
                self.spans += ({**span, "scope": of_scope["scope"]["name"]} for span in of_scope["spans"])
        return ExportTraceServiceResponse()


@contextmanager
def receiving() -> Iterator[Received]:
    """Receive spans on a free port while the block runs."""
    server = grpc.server(ThreadPoolExecutor(1))
    received = Received(server.add_insecure_port("127.0.0.1:0"))
    method = grpc.unary_unary_rpc_method_handler(
        received.take, ExportTraceServiceRequest.FromString, ExportTraceServiceResponse.SerializeToString
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, {"Export": method}),))
    server.start()
    try:
        yield received
    finally:
        server.stop(None).wait()


def attributes(found: list[dict[str, Any]] | None) -> dict[str, Any]:
    """Return attributes by name; whole numbers are text, as protobuf's JSON has them."""
    return {each["key"]: next(iter(each["value"].values())) for each in found or ()}

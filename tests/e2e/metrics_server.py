"""Server with the API of metrics-server (`metrics.k8s.io/v1beta1`, nodes and pods), behind an API server.

It measures nothing: tests set the usage of each object.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from steersman.server.certificates import CertificateFiles

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
ROOT = f"/apis/{GROUP}/{VERSION}"
NODES = {"name": "nodes", "singularName": "", "namespaced": False, "kind": "NodeMetrics", "verbs": ["get", "list"]}
PODS = {"name": "pods", "singularName": "", "namespaced": True, "kind": "PodMetrics", "verbs": ["get", "list"]}
_TYPES = "io.k8s.metrics.pkg.apis.metrics.v1beta1"
_COMMON: dict[str, Any] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"type": "object"},
    "timestamp": {"type": "string", "format": "date-time"},
    "window": {"type": "string"},
}
_USAGE: dict[str, Any] = {
    "type": "object",
    "additionalProperties": {"type": "string"},
    "description": "The memory usage.",
}
_CONTAINERS: dict[str, Any] = {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}}
SCHEMAS: dict[str, Any] = {
    f"{_TYPES}.{kind}": {
        "description": f"{kind} sets resource usage metrics.",
        "type": "object",
        "properties": {**_COMMON, **own},
        "x-kubernetes-group-version-kind": [{"group": GROUP, "version": VERSION, "kind": kind}],
    }
    for kind, own in (("NodeMetrics", {"usage": _USAGE}), ("PodMetrics", {"containers": _CONTAINERS}))
}
Usage = dict[str, str]


class MetricsServer:
    """Server that runs until `stop`. Clients with a certificate of the CA of `files` may name the request user."""

    def __init__(self, files: CertificateFiles, host: str) -> None:
        self.nodes: dict[str, Usage] = {}
        self.pods: dict[tuple[str, str], tuple[dict[str, str], dict[str, Usage]]] = {}
        """Labels of each pod and usage of each of its containers, by namespace and name."""
        self.asked_by: list[str] = []
        """Users that requested metrics."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files.server, files.server_key)
        context.load_verify_locations(files.ca)
        context.verify_mode = ssl.CERT_REQUIRED
        self.ca_bundle = base64.b64encode(files.ca.read_bytes()).decode()
        handler = type("Handler", (_Handler,), {"served": self})
        self._server = ThreadingHTTPServer((host, 0), handler)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.host, self.port = host, self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, path: str, selector: str) -> Any:
        """Return the response body for a path, None if there is nothing."""
        if path == ROOT:
            return {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": f"{GROUP}/{VERSION}",
                "resources": [NODES, PODS],
            }
        if path == "/openapi/v2":
            return {
                "swagger": "2.0",
                "info": {"title": "m", "version": "v"},
                "paths": _paths(2),
                "definitions": SCHEMAS,
            }
        if path == "/openapi/v3":
            return {"paths": {f"apis/{GROUP}/{VERSION}": {"serverRelativeURL": f"/openapi/v3{ROOT}?hash=A"}}}
        if path == f"/openapi/v3{ROOT}":
            info = {"title": "m", "version": "v"}
            return {"openapi": "3.0.0", "info": info, "paths": _paths(3), "components": {"schemas": SCHEMAS}}
        if not path.startswith(f"{ROOT}/"):
            return None
        match path.removeprefix(f"{ROOT}/").split("/"):
            case ["nodes"]:
                return _list("NodeMetrics", [self._node(name) for name in self.nodes])
            case ["nodes", name] if name in self.nodes:
                return self._node(name)
            case ["pods"]:
                return _list("PodMetrics", [self._pod(key) for key in self.pods if self._matches(key, selector)])
            case ["namespaces", namespace, "pods"]:
                keys = [key for key in self.pods if key[0] == namespace and self._matches(key, selector)]
                return _list("PodMetrics", [self._pod(key) for key in keys])
            case ["namespaces", namespace, "pods", name] if (namespace, name) in self.pods:
                return self._pod((namespace, name))
        return None

    def _matches(self, key: tuple[str, str], selector: str) -> bool:
        wanted = [each.split("=", 1) for each in selector.split(",") if each]
        return all(self.pods[key][0].get(name) == value for name, value in wanted)

    def _node(self, name: str) -> Any:
        return _metrics("NodeMetrics", {"name": name}, usage=self.nodes[name])

    def _pod(self, key: tuple[str, str]) -> Any:
        labels, usages = self.pods[key]
        containers = [{"name": name, "usage": usage} for name, usage in usages.items()]
        return _metrics("PodMetrics", {"name": key[1], "namespace": key[0], "labels": labels}, containers=containers)


def _metrics(kind: str, metadata: dict[str, Any], **own: Any) -> dict[str, Any]:
    now = "2026-01-02T03:04:05Z"
    head = {"kind": kind, "apiVersion": f"{GROUP}/{VERSION}", "metadata": {**metadata, "creationTimestamp": now}}
    return {**head, "timestamp": now, "window": "20.0s", **own}


def _list(kind: str, items: list[Any]) -> Any:
    return {"kind": f"{kind}List", "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}, "items": items}


def _paths(version: int) -> Any:
    """Return the one path of the OpenAPI documents that the tests look for."""
    reference = {"$ref": f"#/{'definitions' if version == 2 else 'components/schemas'}/{_TYPES}.NodeMetrics"}
    schema = {"schema": reference} if version == 2 else {"content": {"application/json": {"schema": reference}}}
    read = {
        "operationId": "readMetricsV1beta1NodeMetrics",
        "responses": {"200": {"description": "OK", **schema}},
        "x-kubernetes-group-version-kind": {"group": GROUP, "version": VERSION, "kind": "NodeMetrics"},
    }
    return {f"{ROOT}/nodes/{{name}}": {"get": read}}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served: MetricsServer

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        body = self.served.answer(parts.path, parse_qs(parts.query).get("labelSelector", [""])[0])
        if parts.path.startswith(f"{ROOT}/"):
            self.served.asked_by.append(self.headers.get("X-Remote-User", ""))
        data = json.dumps(body).encode()
        self.send_response(200 if body is not None else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


def manifests(server: MetricsServer) -> str:
    """Return manifests that install metrics-server, with an EndpointSlice instead of a Deployment."""
    service = {"name": "metrics-server", "namespace": "kube-system"}
    labels = {"k8s-app": "metrics-server"}
    gathered = {f"rbac.authorization.k8s.io/aggregate-to-{each}": "true" for each in ("admin", "edit", "view")}
    return json.dumps(
        {
            "kind": "List",
            "apiVersion": "v1",
            "items": [
                {
                    "apiVersion": "v1",
                    "kind": "Service",
                    "metadata": {**service, "labels": labels},
                    "spec": {"ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": "https"}]},
                },
                {
                    "apiVersion": "discovery.k8s.io/v1",
                    "kind": "EndpointSlice",
                    "addressType": "IPv4",
                    "metadata": {**service, "labels": {"kubernetes.io/service-name": "metrics-server"}},
                    "endpoints": [{"addresses": [server.host]}],
                    "ports": [{"name": "https", "port": server.port}],
                },
                {
                    "apiVersion": "rbac.authorization.k8s.io/v1",
                    "kind": "ClusterRole",
                    "metadata": {"name": "system:aggregated-metrics-reader", "labels": labels | gathered},
                    "rules": [
                        {"apiGroups": [GROUP], "resources": ["pods", "nodes"], "verbs": ["get", "list", "watch"]}
                    ],
                },
                {
                    "apiVersion": "apiregistration.k8s.io/v1",
                    "kind": "APIService",
                    "metadata": {"name": f"{VERSION}.{GROUP}", "labels": labels},
                    "spec": {
                        "group": GROUP,
                        "version": VERSION,
                        "groupPriorityMinimum": 100,
                        "versionPriority": 100,
                        "service": service,
                        "caBundle": server.ca_bundle,
                    },
                },
            ],
        }
    )

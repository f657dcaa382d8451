"""Simulated HTTP server of agnhost, for its commands netexec, porter and serve-hostname."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import parse_qs

import msgspec

from steersman.api.core.v1 import Pod
from steersman.machinery.values import times
from steersman.net.ascii import is_digits
from steersman.net.message import Request, Response
from steersman.nodes.initial_world import command_of, is_agnhost, plain_variables
from steersman.nodes.naming import hostname_of
from steersman.nodes.server.kubelet import text
from steersman.nodes.variables import ArgumentsTooLong

_MOST_FIELDS = 100


def answer_of_agnhost(pod: Pod, port: int, request: Request) -> Response | None:
    """Return agnhost's response; None if no container of the pod serves `port` with one of its commands."""
    for container in pod.spec.containers or ():
        ports = [each.container_port for each in container.ports]
        if not is_agnhost(container) or (ports and port not in ports):
            continue
        try:
            variables = plain_variables(pod, container)
        except ArgumentsTooLong:
            continue
        match command_of(container, variables)[1:]:
            case ["serve-hostname", *_]:
                return text(200, hostname_of(pod))
            case ["netexec", *_]:
                return _netexec(pod, port, request)
            case ["porter", *flags]:
                value = variables.get(f"SERVE_PORT_{port}") or variables.get(f"SERVE_TCP_PORT_{port}")
                if value is not None:
                    return _porter(value, request, is_json="--json-response" in flags)
    return None


def _netexec(pod: Pod, port: int, request: Request) -> Response | None:
    """Return the response of a page that only reports something; None for any other page."""
    match request.path:
        case "/":
            return text(200, f"NOW: {datetime.fromtimestamp(times.unix_now(), UTC):%Y-%m-%d %H:%M:%S.%f}000 +0000 UTC")
        case "/clientip":
            return text(200, f"{request.peer.host}:{request.peer.port}")
        case "/serverport":
            return text(200, str(port))
        case "/hostname" | "/hostName":
            return text(200, hostname_of(pod))
        case "/healthz" | "/readyz":
            return Response(200, [], b"")
        case "/echo":
            asked = parse_qs(request.query, max_num_fields=_MOST_FIELDS)
            code = asked.get("code", ["200"])[0]
            is_code = is_digits(code) and 200 <= int(code[:4]) < 600
            return text(int(code) if is_code else 200, asked.get("msg", [""])[0])
    return None


def _porter(value: str, request: Request, *, is_json: bool) -> Response:
    if not is_json:
        return text(200, value)
    return Response(
        200, [("content-type", "application/json")], msgspec.json.encode({"Method": request.method, "Body": value})
    )

"""Characters that are dear to judge, to quote or to encode: in each header, query option and segment of a path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final
from urllib.parse import quote

from .case import ADMIN, ANONYMOUS, NAMESPACE, NARROW, USERS, Case, Header, Message, Request, Target, repeated
from .heads import HEADERS, LARGEST, PARAMETERS

_OBJECTS: Final = f"/api/v1/namespaces/{NAMESPACE}"
_FILLERS: Final = {
    "control": "\x01",
    "delete": "\x7f",
    "null": "\0",
    "tab": "\t",
    "quotes": '"',
    "backslashes": "\\",
    "marks": "<&>",
    "invalid": "\udcff",
    "cut-short": "\udcf0\udc9f",
    "invisible": "\u200b",
    "private": "\ue000",
    "combining": "\u0301",
    "wide": "漢",
    "astral": "😀",
    "unassigned": "\U000e0fff",
    "latin": "é",
    "separator": "\u2028",
    "two": '"漢',
    "many": "".join(chr(0x4E00 + each) for each in range(200)),
    "many-unprintable": "".join(chr(0xE000 + each) for each in range(200)),
}
"""Surrogates stand for bytes that are no UTF-8."""
_PATHS: Final = (
    "/{}",
    "/{}/a",
    "/api/{}",
    "/api/v1/{}",
    "/api/v1/{}/a",
    "/apis/{}",
    "/apis/{}/v1/a",
    "/apis/a/{}/a",
    "/apis/apps/v1/{}",
    "/api/v1/namespaces/{}",
    "/api/v1/namespaces/{}/pods",
    "/api/v1/namespaces/{}/pods/a",
    f"{_OBJECTS}/{{}}",
    f"{_OBJECTS}/{{}}/a",
    f"{_OBJECTS}/pods/{{}}",
    f"{_OBJECTS}/pods/{{}}/log",
    f"{_OBJECTS}/pods/{{}}/exec",
    f"{_OBJECTS}/pods/{{}}/portforward",
    f"{_OBJECTS}/pods/a/{{}}",
    f"{_OBJECTS}/pods/a/proxy/{{}}",
    f"{_OBJECTS}/services/{{}}/proxy/a",
    f"{_OBJECTS}/configmaps/{{}}",
    "/api/v1/watch/namespaces/{}/pods",
    f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{{}}/scale",
    "/healthz/{}",
    "/livez/{}",
    "/metrics/{}",
    "/openapi/v3/{}",
    "/openapi/v3/apis/{}",
    "/version/{}",
    "/logs/{}",
    "/debug/pprof/{}",
    "/.well-known/{}",
    "/openid/v1/{}",
)
_OPTIONS: Final = {
    ("GET", f"{_OBJECTS}/configmaps"): tuple(each for each in PARAMETERS if each != "watch"),
    ("GET", f"{_OBJECTS}/configmaps/none"): ("watch", "resourceVersion"),
    ("POST", f"{_OBJECTS}/configmaps"): ("dryRun", "fieldManager", "fieldValidation", "pretty", "a"),
    ("PATCH", f"{_OBJECTS}/configmaps/none"): ("dryRun", "fieldManager", "fieldValidation", "force", "pretty"),
    ("DELETE", f"{_OBJECTS}/configmaps/none"): (
        "dryRun",
        "gracePeriodSeconds",
        "propagationPolicy",
        "orphanDependents",
        "uid",
        "resourceVersion",
        "ignoreStoreReadErrorWithClusterBreakingPotential",
    ),
    ("DELETE", f"{_OBJECTS}/configmaps"): ("labelSelector", "fieldSelector", "uid", "continue", "timeoutSeconds"),
    ("GET", f"{_OBJECTS}/pods/none/log"): (
        "container",
        "follow",
        "previous",
        "sinceSeconds",
        "sinceTime",
        "timestamps",
        "tailLines",
        "limitBytes",
        "insecureSkipTLSVerifyBackend",
        "stream",
    ),
    ("GET", f"{_OBJECTS}/pods/none/exec"): ("container", "command", "stdin", "stdout", "tty"),
    ("GET", f"{_OBJECTS}/pods/none/attach"): ("container", "stdin", "stdout", "tty"),
    ("GET", f"{_OBJECTS}/pods/none/portforward"): ("ports",),
    ("GET", f"{_OBJECTS}/pods/none/proxy"): ("path", "a"),
    ("GET", f"{_OBJECTS}/services/none/proxy"): ("path", "a"),
    ("GET", "/livez"): ("verbose", "exclude", "a"),
    ("GET", "/openapi/v3/api/v1"): ("hash",),
    ("GET", "/metrics"): ("name[]",),
    ("GET", "/version"): ("timeout", "pretty"),
    ("GET", "/none"): ("timeout", "pretty", "a"),
}
_STREAMS: Final = frozenset({"exec", "attach", "portforward"})
_CLOSE: Final = (("Connection", "close"),)
_UPGRADE: Final = (
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="),
    ("Sec-WebSocket-Protocol", "v4.channel.k8s.io"),
)
_WITH_BODY: Final = {"POST": "application/json", "PATCH": "application/merge-patch+json"}
_OF_HTTP1: Final = frozenset({"Connection", "Upgrade", "TE", "Host", "Expect"})
_PREFIXES: Final = {
    "Accept": ("application/json;as=", "application/json;q="),
    "Authorization": ("Bearer ", "Basic "),
    "Content-Type": ("application/", "application/json; charset="),
    "If-None-Match": ('"',),
    "User-Agent": ("kubectl/",),
    "Traceparent": ("00-",),
    "Range": ("bytes=",),
    "Accept-Encoding": ("gzip;q=",),
    "Host": ("a:",),
    "Sec-WebSocket-Protocol": ("base64url.bearer.authorization.k8s.io.",),
}


def cases() -> Iterator[Case]:
    """Each filler at each place, over HTTP/1.1 and HTTP/2; in paths and queries as it is and escaped."""
    for protocol in ("http/1.1", "h2"):
        for label, filler in _FILLERS.items():
            yield from _headers(protocol, label, filler)
            for form, unit in (("raw", filler), ("escaped", quote(filler, safe="", errors="surrogateescape"))):
                yield from _queries(protocol, f"{label}-{form}", unit)
                yield from _paths(protocol, f"{label}-{form}", unit)


def _case(name: str, group: str, protocol: str, write: Callable[[int], Request]) -> Case:
    def make(size: int, target: Target) -> Message:
        request = write(size)
        if protocol == "h2":
            return replace(request, protocol=protocol)
        return replace(request, headers=(*request.headers, *_CLOSE))

    return Case(f"fillers/{protocol}/{name}", make, group, LARGEST)


def _filled(unit: str, size: int) -> str:
    return repeated(unit, size * len(unit) // len(unit.encode("utf-8", "surrogateescape")))


def _headers(protocol: str, label: str, unit: str) -> Iterator[Case]:
    for name in HEADERS:
        if protocol == "h2" and name in _OF_HTTP1:
            continue
        impersonates = name.startswith("Impersonate")
        before = (("Impersonate-User", "a"),) if impersonates and name != "Impersonate-User" else ()
        for head in ("", *_PREFIXES.get(name, ())):
            for token in (ANONYMOUS, ADMIN if impersonates else NARROW):

                def write(
                    size: int,
                    name: str = name,
                    head: str = head,
                    token: str = token,
                    before: tuple[Header, ...] = before,
                ) -> Request:
                    fields = (*before, (name, head + _filled(unit, size)))
                    return Request("GET", f"{_OBJECTS}/configmaps", fields, token=token)

                yield _case(f"headers/{name}/{head}{label}/{USERS[token]}", f"headers/{name}", protocol, write)


def _queries(protocol: str, label: str, unit: str) -> Iterator[Case]:
    for (method, path), options in _OPTIONS.items():
        if protocol == "h2" and method in _WITH_BODY:
            continue
        upgraded = _UPGRADE if protocol != "h2" and path.rpartition("/")[2] in _STREAMS else ()
        for option in options:

            def write(
                size: int,
                method: str = method,
                path: str = path,
                option: str = option,
                headers: tuple[Header, ...] = upgraded,
            ) -> Request:
                body = b'{"metadata":{"name":"none"}}' if method in _WITH_BODY else b""
                media = (("Content-Type", _WITH_BODY[method]),) if body else ()
                return Request(method, f"{path}?{option}={_filled(unit, size)}", (*headers, *media), body)

            where = f"queries/{method} {path}/{option}"
            yield _case(f"{where}/{label}", where, protocol, write)


def _paths(protocol: str, label: str, unit: str) -> Iterator[Case]:
    for path in _PATHS:
        for token in (ANONYMOUS, NARROW):

            def write(size: int, path: str = path, token: str = token) -> Request:
                return Request("GET", path.replace("{}", _filled(unit, size)), token=token)

            yield _case(f"paths{path}/{label}/{USERS[token]}", f"paths{path}", protocol, write)

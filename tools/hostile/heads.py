"""Heads of requests made long: headers, query, path, continue tokens; of nobody and of the narrow user."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Final

from .case import ADMIN, ANONYMOUS, NAMESPACE, NARROW, USERS, Case, Message, Request, Target, numbered, repeated

LARGEST: Final = 900_000
"""A head that is larger is refused by Go's server: its limit is 1 MiB."""
_LIST: Final = f"/api/v1/namespaces/{NAMESPACE}/configmaps"

HEADERS: Final = (
    "Accept",
    "Accept-Encoding",
    "Accept-Language",
    "Authorization",
    "Content-Type",
    "Content-Encoding",
    "Cookie",
    "User-Agent",
    "Impersonate-User",
    "Impersonate-Group",
    "Impersonate-Uid",
    "Impersonate-Extra-a",
    "If-None-Match",
    "Origin",
    "Referer",
    "X-Forwarded-For",
    "X-Remote-User",
    "X-Remote-Group",
    "X-Remote-Extra-a",
    "Audit-ID",
    "Traceparent",
    "Via",
    "Expect",
    "Range",
    "Connection",
    "Upgrade",
    "Sec-WebSocket-Protocol",
    "TE",
    "Access-Control-Request-Headers",
    "Host",
    "Warning",
)
_VALUES: Final = (
    ("a", "", "a"),
    ("commas", "", ","),
    ("list", "a", ",a"),
    ("qualities", "a", ",application/json;q=0.1"),
    ("parameters", "application/json", ";a=b"),
    ("semicolons", "", ";"),
    ("bearer", "Bearer ", "a."),
    ("basic", "Basic ", "YTpi"),
    ("cookies", "a=b", "; a=b"),
    ("quotes", '"', '\\"'),
    ("percent", "", "%41"),
    ("spaces", "a", " a"),
    ("slashes", "a", "/a"),
    ("accept-as", "", "application/json;as=Table;v=v1;g=meta.k8s.io,"),
    ("stars", "", "*/*,"),
    ("token-protocols", "base64url.bearer.authorization.k8s.io.", "YQ"),
)
_MANY: Final = (
    "x-{i}",
    "x",
    "accept",
    "cookie",
    "impersonate-group",
    "impersonate-extra-{i}",
    "impersonate-extra-%41{i}",
    "x-remote-extra-{i}",
    "x-remote-group",
    "authorization",
    "user-agent",
    "x-forwarded-for",
)
PARAMETERS: Final = (
    "timeout",
    "timeoutSeconds",
    "watch",
    "resourceVersion",
    "resourceVersionMatch",
    "limit",
    "continue",
    "pretty",
    "fieldManager",
    "fieldValidation",
    "dryRun",
    "labelSelector",
    "fieldSelector",
    "gracePeriodSeconds",
    "force",
    "propagationPolicy",
    "sendInitialEvents",
    "allowWatchBookmarks",
    "orphanDependents",
    "a",
    "verbose",
    "exclude",
)
_QUERY_VALUES: Final = (
    "1",
    "a",
    "1h",
    "0h",
    "1.",
    "%41",
    "%",
    "+",
    ",",
    "a=b,",
    "(",
    "!",
    "-",
    "true",
    "\u0661",
    "&",
    "=",
    ";",
    "a,",
)
_PAIRS: Final = ("a=1&", "&", "k{i}=1&", "dryRun=All&", "a&", "=&", "%41=%41&", "labelSelector=a&", "a;", "timeout=1h&")
_QUERY_TARGETS: Final = (
    ("GET", _LIST, ANONYMOUS),
    ("GET", _LIST, NARROW),
    ("GET", "/livez", ANONYMOUS),
    ("GET", "/version", ANONYMOUS),
    ("DELETE", f"{_LIST}/none", NARROW),
    ("POST", _LIST, NARROW),
    ("PATCH", f"{_LIST}/none", NARROW),
)
_PATHS: Final = (
    ("root", "/", "a"),
    ("segments", "", "/a"),
    ("dots", "", "/.."),
    ("dot", "", "/."),
    ("slashes", "/", "/"),
    ("encoded-slashes", "/", "%2f"),
    ("percent", "/", "%41"),
    ("bad-percent", "/", "%"),
    ("api", "/api/", "v"),
    ("api-segments", "/api/v1", "/a"),
    ("apis", "/apis/", "a."),
    ("apis-segments", "/apis", "/a"),
    ("namespaces", "/api/v1", "/namespaces/a"),
    ("name", f"{_LIST}/", "a"),
    ("name-dots", f"{_LIST}/", "a."),
    ("name-percent", f"{_LIST}/", "%41"),
    ("below-name", f"{_LIST}/a", "/a"),
    ("watch", "/api/v1", "/watch"),
    ("proxy", f"/api/v1/namespaces/{NAMESPACE}/services/a/proxy", "/a"),
    ("proxy-percent", f"/api/v1/namespaces/{NAMESPACE}/services/a/proxy/", "%2f"),
    ("proxy-name", f"/api/v1/namespaces/{NAMESPACE}/services/", "a:"),
    ("healthz", "/healthz/", "a/"),
    ("openapi", "/openapi/v3/apis/", "a/"),
    ("debug", "/debug/pprof/", "a"),
    ("log", "/logs/", "a/"),
    ("colons", "/", ":"),
    ("unicode", "/", "%C3%A9"),
    ("bad-unicode", "/", "%ff"),
    ("semicolons", "/", ";a=b"),
)


def _case(name: str, write: Callable[[int], Request | None], group: str) -> Case:
    def make(size: int, target: Target) -> Message | None:
        return write(size)

    return Case(name, make, group, LARGEST)


def headers() -> Iterator[Case]:
    """Every header made long in every form, then many headers."""
    for protocol in ("http/1.1", "h2"):
        for name in HEADERS:
            if protocol == "h2" and name in ("Connection", "Upgrade", "TE", "Host"):
                continue
            for label, head, unit in _VALUES:
                for token in (ANONYMOUS, ADMIN if name.startswith("Impersonate") else NARROW):

                    def write(
                        size: int,
                        name: str = name,
                        head: str = head,
                        unit: str = unit,
                        token: str = token,
                        protocol: str = protocol,
                    ) -> Request:
                        value = head + repeated(unit, size)
                        return Request("GET", _LIST, ((name, value), *_close(protocol)), token=token, protocol=protocol)

                    yield _case(f"headers/{protocol}/{name}/{label}/{USERS[token]}", write, f"headers/{name}")
        for form in _MANY:
            for token in (ANONYMOUS, ADMIN):

                def many(size: int, form: str = form, token: str = token, protocol: str = protocol) -> Request:
                    names = numbered(form, size // 2) if "{i}" in form else [form] * (size // (len(form) + 5))
                    pairs = tuple((name, "a") for name in names)
                    return Request("GET", _LIST, (*pairs, *_close(protocol)), token=token, protocol=protocol)

                yield _case(f"headers/{protocol}/many/{form}/{USERS[token]}", many, "headers/many")
    yield from _read_before_anybody_is_known()


def _read_before_anybody_is_known() -> Iterator[Case]:
    """Escapes in a header's name, and a token among the protocols of a WebSocket."""
    for token in (ANONYMOUS, NARROW):

        def escapes(size: int, token: str = token) -> Request:
            name = "Impersonate-Extra-" + repeated("%41", size)
            return Request("GET", _LIST, (("Impersonate-User", "a"), (name, "a"), *_close("")), token=token)

        yield _case(f"headers/names/escapes/{USERS[token]}", escapes, "headers/names")

    def protocols(size: int) -> Request:
        offered = f"{',' * size}a,base64url.bearer.authorization.k8s.io.YQ"
        headers = (("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Protocol", offered))
        return Request("GET", _LIST, headers, token=ANONYMOUS)

    yield _case("headers/protocols/token", protocols, "headers/protocols")


def _close(protocol: str) -> tuple[tuple[str, str], ...]:
    return () if protocol == "h2" else (("Connection", "close"),)


def query() -> Iterator[Case]:
    """Every parameter made long, and many of them."""
    for method, path, token in _QUERY_TARGETS:
        where = f"{method} {path} {USERS[token]}"
        for name in PARAMETERS:
            for unit in _QUERY_VALUES:

                def long(
                    size: int,
                    method: str = method,
                    path: str = path,
                    token: str = token,
                    name: str = name,
                    unit: str = unit,
                ) -> Request:
                    value = repeated(unit, size)
                    return _asked(method, f"{path}?{name}={value}", token)

                yield _case(f"query/{where}/{name}/{unit}", long, f"query/{name}")
        for form in _PAIRS:

            def many(
                size: int, method: str = method, path: str = path, token: str = token, form: str = form
            ) -> Request:
                return _asked(method, f"{path}?{''.join(numbered(form, size))}", token)

            yield _case(f"query/{where}/many/{form}", many, "query/many")


def _asked(method: str, target: str, token: str) -> Request:
    body = b'{"metadata":{"name":"none"}}' if method in ("POST", "PATCH") else b""
    media = "application/merge-patch+json" if method == "PATCH" else "application/json"
    headers = (("Content-Type", media), ("Connection", "close")) if body else (("Connection", "close"),)
    return Request(method, target, headers, body, token)


def paths() -> Iterator[Case]:
    """Paths made long, by all methods that read and one that writes."""
    for method in ("GET", "DELETE"):
        for label, head, unit in _PATHS:
            for token in (ANONYMOUS, NARROW):

                def write(
                    size: int, method: str = method, head: str = head, unit: str = unit, token: str = token
                ) -> Request:
                    return Request(method, head + repeated(unit, size), _close(""), token=token)

                yield _case(f"paths/{method}/{label}/{USERS[token]}", write, f"paths/{label}")


def tokens() -> Iterator[Case]:
    """Continue tokens: deep, long, with large numbers, no JSON, no base64."""
    forms: dict[str, Callable[[int], str]] = {
        "lists": lambda size: "[" * size,
        "objects": lambda size: '{"a":' * (size // 5),
        "start": lambda size: json.dumps({"v": "meta.k8s.io/v1", "rv": 1, "start": "a/" * (size // 2)}),
        "dots": lambda size: json.dumps({"v": "meta.k8s.io/v1", "rv": 1, "start": "../" * (size // 3)}),
        "number": lambda size: '{"v":"meta.k8s.io/v1","start":"a","rv":' + "1" * size + "}",
        "exponent": lambda size: '{"v":"meta.k8s.io/v1","start":"a","rv":1e' + "9" * size + "}",
        "members": lambda size: "{" + ",".join(numbered('"k{i}":1', size)) + "}",
        "equal-members": lambda size: "{" + ",".join(['"rv":1'] * (size // 7)) + "}",
        "escapes": lambda size: '{"v":"' + "\\u0061" * (size // 6) + '"}',
        "spaces": lambda size: " " * size,
    }
    for label, form in forms.items():

        def write(size: int, form: Callable[[int], str] = form) -> Request:
            token = base64.urlsafe_b64encode(form(size * 3 // 4).encode()).rstrip(b"=").decode()
            return _asked("GET", f"{_LIST}?limit=1&continue={token}", NARROW)

        yield _case(f"tokens/continue/{label}", write, "tokens")
    for label, token in (("jwt", "a."), ("jwt-deep", "W1tb"), ("dots", "."), ("text", "a")):

        def bearer(size: int, token: str = token) -> Request:
            value = repeated(token, size)
            if token == "W1tb":
                value = f"{value}.{value}.{value}"
            return Request("GET", _LIST, (("Authorization", f"Bearer {value}"), *_close("")), token=ANONYMOUS)

        yield _case(f"tokens/bearer/{label}", bearer, "tokens")

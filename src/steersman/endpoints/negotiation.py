"""Negotiation of the media type of an answer, and parsing of a body's media type.

Follows k8s.io/apiserver `endpoints/handlers/negotiation`, which runs after go-restful's check of the Accept header:
go-restful refuses types that the route cannot produce, the handler evaluates parameters
(`as=Table;g=meta.k8s.io;v=v1`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from msgspec import Struct

from steersman.machinery.errors.go_numbers import parse_float
from steersman.machinery.errors.status import StatusError, not_acceptable, unsupported_media_type
from steersman.machinery.go.strings import to_lower
from steersman.work.patterns import late_pattern

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
TEXT: Final = "text/plain"
PRODUCED: Final = (JSON, YAML, PROTOBUF)
STREAMED: Final = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
_ENCODED: Final = frozenset(PRODUCED)

_SPACE: Final = r"[ \t\n\v\f\r\x85\xa0]*+"
_TOKEN: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]++"
_VALUE: Final = rf'(?:{_TOKEN}|"(?:[^"\\\r\n]|\\.)*+")'
_MEDIA_TYPE: Final = late_pattern(
    rf"{_SPACE}({_TOKEN}/{_TOKEN}){_SPACE}((?:;{_SPACE}{_TOKEN}{_SPACE}={_SPACE}{_VALUE}{_SPACE})*+);?{_SPACE}",
    re.ASCII,
)
"""Media types that mime.ParseMediaType accepts; its error texts are never shown."""
_PARAMETER: Final = late_pattern(rf";{_SPACE}({_TOKEN}){_SPACE}={_SPACE}({_VALUE})", re.ASCII)
_ESCAPED: Final = late_pattern(r"\\(.)", re.ASCII)
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})

LONGEST_ACCEPT: Final = 2048
"""Limit of characters of an Accept header that are parsed and used as cache keys: it arrives before authentication."""
PRETTY_AGENTS: Final = ("curl", "Wget", "Mozilla/5.0")
"""Prefixes of the User-Agent of clients that get indented JSON by default."""
META_GROUP: Final = "meta.k8s.io"
CONFIG_GROUP: Final = "config.k8s.io"


class Representation(Struct, frozen=True):
    """The representation of an answer: its media type, indentation, and kind (`as_kind` "" is the object itself).

    `as_version` is a version of meta.k8s.io, v1 or v1beta1; for pages, a version of config.k8s.io.
    """

    media: str = JSON
    pretty: bool = False
    as_kind: str = ""
    as_version: str = ""


PLAIN_JSON: Final = Representation()


class _Clause(Struct, frozen=True):
    media: str
    parameters: tuple[tuple[str, str], ...]
    quality: float


def bounded(accept: str) -> str:
    """Return the part of an Accept header that is parsed: whole clauses within a limit that real clients do not
    reach.
    """
    if len(accept) <= LONGEST_ACCEPT:
        return accept
    return accept[:LONGEST_ACCEPT].rpartition(",")[0] or accept[:LONGEST_ACCEPT]


def _clauses(accept: str) -> tuple[_Clause, ...]:
    """Return the clauses of an Accept header in the order in which upstream tries them."""
    found = []
    for text in accept.split(","):
        media, *parameters = text.strip(" ").split(";")
        pairs = []
        quality = 1.0
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            value, _, more = value.partition("=")
            key = key.strip(" ")
            if more or not value:
                continue
            if key == "q":
                try:
                    quality = parse_float(value)
                except ValueError:
                    quality = 0.0
            else:
                pairs.append((key, value.strip(" ")))
        found.append(_Clause(media.strip(" "), tuple(pairs), quality))
    if len(found) > _SORTED_BY_INSERTION:
        return tuple(sorted(found, key=lambda clause: (-clause.quality, clause.media in _WILDCARDS)))
    for at in range(1, len(found)):
        while at and _comes_before(found[at], found[at - 1]):
            found[at - 1 : at + 1] = found[at], found[at - 1]
            at -= 1
    return tuple(found)


_SORTED_BY_INSERTION: Final = 12
"""Number of elements up to which Go sorts by insertion. Its comparison below is no total order, so that clients can
observe the algorithm.
"""
_WILDCARDS: Final = frozenset({"*", "*/*"})
_ANY_APPLICATION: Final = "application/*"


def _comes_before(one: _Clause, other: _Clause) -> bool:
    return one.quality > other.quality or (one.media not in _WILDCARDS and other.media in _WILDCARDS)


_TABLES: Final = frozenset({"Table", "PartialObjectMetadata", "PartialObjectMetadataList"})


@lru_cache(4096)
def negotiate(
    accept: str,
    *,
    tables: bool = False,
    partial: bool = False,
    stream: bool = False,
    pretty: bool = False,
    offers_stream: bool = False,
    routed: bool = True,
) -> Representation:
    """Return the representation for an Accept header.

    `tables` and `partial` are the transformations that the endpoint offers. `stream` is True for a watch,
    `offers_stream` if the route could also be a watch (a collection). `routed` is True if upstream's router checks the
    header before the handler; the router does not accept `application/*`. Raises StatusError 406.
    """
    if not accept:
        return Representation(JSON, pretty)
    produced = PRODUCED + STREAMED if offers_stream else PRODUCED
    clauses = _clauses(accept)
    if routed and not any(_produces(clause, produced) for clause in clauses):
        raise route_not_acceptable(produced)
    for clause in clauses:
        if clause.media in _WILDCARDS or clause.media == _ANY_APPLICATION or clause.media in _ENCODED:
            media = clause.media if clause.media in _ENCODED else JSON
            if stream and media == YAML:
                raise _only(STREAMED)
            chosen = _with_parameters(clause, media, tables=tables, partial=partial, stream=stream, pretty=pretty)
            if chosen is not None:
                return chosen
    raise _only(PRODUCED)


_PAGE_MEDIA: Final = (JSON, YAML, TEXT)


def negotiate_page(accept: str, kind: str, versions: frozenset[str], *, pretty: bool = False) -> Representation:
    """Return the representation of a page: text, or an object of a kind of config.k8s.io if the header asks for it.

    `accept` is bounded. Follows k8s.io/component-base `zpages`. Raises StatusError 406.
    """
    if not accept:
        return Representation(TEXT)
    for clause in _clauses(accept):
        named = dict(clause.parameters)
        gvk = (named.get("as", ""), named.get("g", ""), named.get("v", ""))
        for media in _PAGE_MEDIA:
            general = f"{media.partition('/')[0]}/*"
            if clause.media not in (media, general) and clause.media not in _WILDCARDS:
                continue
            if media == TEXT and gvk == ("", "", ""):
                return Representation(TEXT)
            if media != TEXT and gvk[:2] == (kind, CONFIG_GROUP) and gvk[2] in versions:
                return Representation(media, named["pretty"] == "1" if "pretty" in named else pretty, kind, gvk[2])
    raise _only(_PAGE_MEDIA)


def _only(accepted: tuple[str, ...]) -> StatusError:
    return not_acceptable(f"only the following media types are accepted: {', '.join(accepted)}")


def route_not_acceptable(produced: tuple[str, ...]) -> StatusError:
    """Return the 406 error of upstream's router."""
    error = not_acceptable(f"406: Not Acceptable\n\nAvailable representations: {', '.join(produced)}")
    error.details_present = True
    return error


def route_unsupported_media_type() -> StatusError:
    """Return the 415 error of upstream's router."""
    error = unsupported_media_type("415: Unsupported Media Type")
    error.details_present = True
    return error


def consumes(content_type: str, media: tuple[str, ...] = PRODUCED) -> bool:
    """Return True if a route for these media types accepts a GET with this Content-Type."""
    return not content_type or any(
        each.partition(";")[0].strip(" ") in (*media, "*/*") for each in bounded(content_type).split(",")
    )


def _produces(clause: _Clause, produced: tuple[str, ...]) -> bool:
    return clause.media == "*/*" or any(clause.media == each.partition(";")[0] for each in produced)


def _with_parameters(
    clause: _Clause, media: str, *, tables: bool, partial: bool, stream: bool, pretty: bool
) -> Representation | None:
    kind = group = version = ""
    for key, value in clause.parameters:
        if key == "as":
            kind = value
        elif key == "g":
            group = value
        elif key == "v":
            version = value
        elif key == "pretty":
            pretty = value == "1"
        elif key == "stream" and value not in ("", "watch"):
            return None
    if kind or group or version:
        offered = tables and media != PROTOBUF if kind == "Table" else partial
        if kind not in _TABLES or not offered or group != META_GROUP or version not in ("v1", "v1beta1"):
            return None
        return Representation(media, pretty, kind, version)
    return Representation(media, pretty)


def body_media(content_type: str) -> str:
    """Return the media type of a body, JSON by default. Raises StatusError 415."""
    if content_type in _ENCODED:
        return content_type
    if not content_type:
        return JSON
    match = _MEDIA_TYPE.fullmatch(content_type)
    if match is not None and (media := to_lower(match[1])) in _ENCODED and _agree(match[2]):
        return media
    raise unsupported_media_type(
        f"the body of the request was in an unknown format - accepted media types include: {', '.join(PRODUCED)}"
    )


def _agree(parameters: str) -> bool:
    """Return True if no parameter of a media type occurs twice with different values."""
    values: dict[str, str] = {}
    for name, value in _PARAMETER.findall(parameters):
        if values.setdefault(to_lower(name), _ESCAPED.sub(r"\1", value)) != _ESCAPED.sub(r"\1", value):
            return False
    return True


def wants_pretty(query_value: str | None, user_agent: str) -> bool:
    """Return True if JSON is to be indented: by query parameter, or by default for curl and browsers."""
    if query_value:
        return query_value in _TRUE
    return user_agent.startswith(PRETTY_AGENTS)


@lru_cache(256)
def discovery_form(accept: str, *, routed: bool) -> str:
    """Return the form of /api or /apis that an Accept header prefers: the aggregated form's media type, or "plain".

    `routed` has the meaning of `negotiate`.
    """
    for clause in _clauses(accept) if accept else ():
        if clause.media not in _ENCODED and clause.media != "*/*" and (routed or clause.media != _ANY_APPLICATION):
            continue
        parameters = dict(clause.parameters)
        if parameters.get("as") == "APIGroupDiscoveryList" and parameters.get("g") == "apidiscovery.k8s.io":
            if parameters.get("v") == "v2":
                return clause.media if clause.media in _ENCODED else JSON
            continue
        if not parameters.get("as"):
            return "plain"
    return "plain"


def accepts(accept: str, media: str) -> bool:
    """Return True if an Accept header permits a route that produces only one media type."""
    return not accept or any(_produces(clause, (media,)) for clause in _clauses(accept))

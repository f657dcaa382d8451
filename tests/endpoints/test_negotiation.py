"""Negotiation of representations by Accept headers, and media types of bodies."""

from __future__ import annotations

import gc
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.endpoints.negotiation import (
    LONGEST_ACCEPT,
    Representation,
    body_media,
    bounded,
    discovery_form,
    negotiate,
    wants_pretty,
)
from steersman.machinery.errors.status import StatusError
from tests.endpoints.small_server import SmallServer

JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
TABLE = f"{JSON};as=Table;v=v1;g=meta.k8s.io"
OLD_TABLE = f"{JSON};as=Table;v=v1beta1;g=meta.k8s.io"
PARTIAL = "as=PartialObjectMetadata;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "media", "as_kind", "as_version"),
    [
        ("", JSON, "", ""),
        ("*/*", JSON, "", ""),
        (JSON, JSON, "", ""),
        (YAML, YAML, "", ""),
        (PROTOBUF, PROTOBUF, "", ""),
        (f"{PROTOBUF},{JSON}", PROTOBUF, "", ""),
        (f"{JSON};q=0.5, {YAML}", YAML, "", ""),
        (f"{JSON};q=0.5, {YAML};q=0.4", JSON, "", ""),
        (f"{JSON};q=much, {YAML};q=0.1", YAML, "", ""),
        (f"*/*, {YAML}", YAML, "", ""),
        (f"*/*, {YAML};q=0.1", YAML, "", ""),
        (f"{YAML};q=0.1, */*", JSON, "", ""),
        ("text/html, */*;q=0.1", JSON, "", ""),
        (f"text/html, {YAML}", YAML, "", ""),
        (f" {YAML} ; charset=utf-8", YAML, "", ""),
        (TABLE, JSON, "Table", "v1"),
        (f"{TABLE},{OLD_TABLE},{JSON}", JSON, "Table", "v1"),
        (OLD_TABLE, JSON, "Table", "v1beta1"),
        (f"{PROTOBUF};as=Table;v=v1;g=meta.k8s.io,{JSON}", JSON, "", ""),
        (f"{YAML};as=Table;v=v1;g=meta.k8s.io", YAML, "Table", "v1"),
        (f"{JSON};as=Table;v=v2;g=meta.k8s.io,{JSON}", JSON, "", ""),
        (f"{JSON};as=Table;v=v1;g=other,{YAML}", YAML, "", ""),
        (f"{JSON};as=Other;v=v1;g=meta.k8s.io,{YAML}", YAML, "", ""),
        (f"{PROTOBUF};{PARTIAL}", PROTOBUF, "PartialObjectMetadata", "v1"),
        (f"{JSON};{PARTIAL}", JSON, "PartialObjectMetadata", "v1"),
        (f"{JSON};stream=watch", JSON, "", ""),
        (f"{JSON};stream=other,{YAML}", YAML, "", ""),
        (",".join(["text/html"] * 20 + [f"{JSON};q=0.1", YAML]), YAML, "", ""),
    ],
)
def test_what_an_accept_header_gets(accept: str, media: str, as_kind: str, as_version: str) -> None:
    found = negotiate(accept, tables=True, partial=True)
    assert found == Representation(media, False, as_kind, as_version)


ROUTE = f"406: Not Acceptable\n\nAvailable representations: {JSON}, {YAML}, {PROTOBUF}"
HANDLER = f"only the following media types are accepted: {JSON}, {YAML}, {PROTOBUF}"


@pytest.mark.parametrize(
    ("accept", "message"),
    [
        ("text/html", ROUTE),
        ("application/*", ROUTE),
        ("application/JSON", ROUTE),
        ("*", ROUTE),
        (",", ROUTE),
        (f"{JSON};as=Table;v=v1", HANDLER),
        (f"{PROTOBUF};as=Table;v=v1;g=meta.k8s.io", HANDLER),
        (f"{JSON};stream=other", HANDLER),
    ],
)
def test_what_cannot_be_had_is_refused(accept: str, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        negotiate(accept, tables=True, partial=True)
    assert (caught.value.code, caught.value.reason, caught.value.message) == (406, "NotAcceptable", message)


def test_transformations_that_are_not_offered_are_passed_over() -> None:
    assert negotiate(f"{TABLE},{YAML}", tables=False, partial=True).media == YAML
    assert negotiate(f"{JSON};{PARTIAL},{YAML}", tables=True, partial=False).media == YAML


def test_watches_cannot_be_had_in_yaml() -> None:
    with pytest.raises(StatusError) as caught:
        negotiate(YAML, stream=True, offers_stream=True)
    streamed = f"{JSON};stream=watch, {PROTOBUF};stream=watch"
    assert caught.value.message == f"only the following media types are accepted: {streamed}"
    with pytest.raises(StatusError) as caught:
        negotiate("text/html", stream=True, offers_stream=True)
    assert caught.value.message == f"{ROUTE}, {streamed}"
    with pytest.raises(StatusError):
        negotiate(f"{YAML},{JSON}", stream=True, offers_stream=True)
    assert negotiate(f"{JSON},{YAML}", stream=True, offers_stream=True).media == JSON


def test_any_application_type_is_json_once_the_router_lets_it_through() -> None:
    assert negotiate(f"application/*;q=0.2,{JSON};as=APIGroupDiscoveryList").media == JSON
    assert negotiate("application/*", routed=False).media == JSON
    with pytest.raises(StatusError) as caught:
        negotiate("text/*", routed=False)
    assert caught.value.message == HANDLER


@pytest.mark.parametrize(("accept", "pretty"), [(f"{JSON};pretty=1", True), (f"{JSON};pretty=0", False), (JSON, False)])
def test_pretty_can_be_asked_for_in_the_header(accept: str, pretty: bool) -> None:
    assert negotiate(accept).pretty is pretty


@pytest.mark.parametrize(
    ("query", "agent", "pretty"),
    [
        (None, "kubectl/v1.36", False),
        (None, "curl/8", True),
        (None, "Wget/1", True),
        (None, "Mozilla/5.0 (X11)", True),
        (None, "Mozilla/4.0", False),
        ("true", "kubectl/v1.36", True),
        ("1", "", True),
        ("false", "curl/8", False),
        ("0", "curl/8", False),
        ("yes", "curl/8", False),
        ("tRUE", "", False),
        ("T", "", True),
        ("", "curl/8", True),
    ],
)
def test_who_gets_indented_json(query: str | None, agent: str, pretty: bool) -> None:
    assert wants_pretty(query, agent) is pretty


@pytest.mark.parametrize(
    ("content_type", "media"),
    [
        ("", JSON),
        (JSON, JSON),
        (f"{JSON}; charset=utf-8", JSON),
        (YAML, YAML),
        (PROTOBUF, PROTOBUF),
        ("Application/JSON", JSON),
        (" application/json ; a = 1 ;", JSON),
        ('application/json; a="1"; a="1"; b="c;\\"d"', JSON),
    ],
)
def test_which_media_type_a_body_has(content_type: str, media: str) -> None:
    assert body_media(content_type) == media


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "application/xml",
        "json",
        "application/\u212aison",
        "application/json; charset",
        "application/json; a b",
        "application/json; a=1; A=2",
        'application/json;a="b',
        "application/json; \u00e9=1",
        ";charset=x",
        "application/json;=x",
        "application/json;;",
        " ",
        "application/json; a=1 b",
    ],
)
def test_bodies_in_other_media_types_are_refused(content_type: str) -> None:
    with pytest.raises(StatusError) as caught:
        body_media(content_type)
    assert (caught.value.code, caught.value.reason) == (415, "UnsupportedMediaType")


AGGREGATED = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", "plain"),
        (JSON, "plain"),
        (f"{JSON};{AGGREGATED}", JSON),
        (f"{JSON};{AGGREGATED},{JSON}", JSON),
        (f"{PROTOBUF};{AGGREGATED}", PROTOBUF),
        (f"{JSON},{JSON};{AGGREGATED}", "plain"),
        (f"{JSON};g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,{JSON}", "plain"),
        (f"{YAML};{AGGREGATED},{JSON}", YAML),
        (f"application/*;{AGGREGATED},{JSON}", "plain"),
        (f"*/*;{AGGREGATED}", JSON),
    ],
)
def test_which_form_of_discovery_is_asked_for(accept: str, form: str) -> None:
    assert discovery_form(accept, routed=True) == form


CLAUSE = st.sampled_from([JSON, YAML, PROTOBUF, "*/*", "text/html", "*", ""])
PARAMETER = st.sampled_from(["q=1", "q=0.5", "q=x", "q=nan", "as=Table", "g=meta.k8s.io", "v=v1", "=", "stream=watch"])


@given(st.lists(st.tuples(CLAUSE, st.lists(PARAMETER, max_size=4)), max_size=15))
def test_every_header_is_answered_or_refused(clauses: Any) -> None:
    accept = ",".join(";".join([media, *parameters]) for media, parameters in clauses)
    media, code = "", 0
    try:
        media = negotiate(accept, tables=True, partial=True).media
    except StatusError as error:
        code = error.code
    assert code == 406 or not accept or "*" in accept or media in accept


def test_of_an_accept_header_only_so_much_is_read() -> None:
    short = f"{YAML}," + "a/b," * 400
    assert bounded(short) is short
    long = short + "a/b," * 100_000 + JSON
    assert bounded(long) == short + "a/b," * ((LONGEST_ACCEPT - len(short)) // 4 - 1) + "a/b"
    assert negotiate(bounded(long)).media == YAML
    assert len(bounded("a" * 1_000_000)) == LONGEST_ACCEPT


async def test_no_cache_keeps_more_of_a_header_than_is_read(small: SmallServer) -> None:
    for path in ("/api/v1/namespaces/ns/configmaps", "/api", "/nowhere", "/version"):
        await small.get(path, accept=f"{JSON}," * 50_000, content_type=f"{JSON};" + "a" * 100_000)
    modules = [each for name, each in sys.modules.items() if name.startswith("steersman.endpoints.")]
    named = [each for module in modules for each in vars(module).values()]
    held: list[object] = [each.memoised for each in named if hasattr(each, "memoised")]
    assert vars(negotiate)["memoised"] in held
    for _ in range(3):  # a cache's entries, their keys, and what these are made of
        held += gc.get_referents(*held)
    assert max(len(each) for each in held if isinstance(each, str)) <= LONGEST_ACCEPT

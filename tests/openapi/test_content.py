"""Accept headers, conditional and range requests on OpenAPI documents."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from steersman.endpoints.request import Request
from steersman.net.body import EMPTY_BODY
from steersman.net.message import Headers, Peer, Response
from steersman.net.message import Request as HttpRequest
from steersman.openapi.accept import JSON, PROTOBUF_V2, PROTOBUF_V3, Encoding, accepted
from steersman.openapi.content import serve_content
from tests.counted_work import calls

MODIFIED = datetime(2026, 11, 21, 10, 50, 52, tzinfo=UTC)
LAST_MODIFIED = "Sat, 21 Nov 2026 10:50:52 GMT"
EARLIER, LATER = "Sat, 21 Nov 2026 10:50:51 GMT", "Sat, 21 Nov 2026 10:50:53 GMT"
ETAG = '"AB12"'
DATA = b"0123456789"


def serve(method: str = "GET", etag: str = ETAG, changed: datetime | None = None, **headers: str) -> Response:
    return serve_with(headers, method, etag, changed)


def serve_with(
    headers: dict[str, str], method: str = "GET", etag: str = ETAG, changed: datetime | None = None
) -> Response:
    pairs = [(name.replace("_", "-"), value) for name, value in headers.items()]
    http = HttpRequest(method, "/doc", "", Headers.from_pairs(pairs), EMPTY_BODY, Peer())
    return serve_content(Request(http), [("content-type", "text/plain")], DATA, MODIFIED, etag, changed)


@pytest.mark.parametrize(
    ("accept", "encoding"),
    [
        ("", JSON),
        ("*/*", JSON),
        ("*", JSON),
        ("application/*", JSON),
        ("application/json", JSON),
        ("application/com.github.proto-openapi.spec.v3.v1.0+protobuf", PROTOBUF_V3),
        ("application/com.github.proto-openapi.spec.v3@v1.0+protobuf", PROTOBUF_V3),
        ("application/json;q=0.5, application/com.github.proto-openapi.spec.v3.v1.0+protobuf", PROTOBUF_V3),
        ("application/yaml, application/json;q=0.1", JSON),
        ("*/*, application/com.github.proto-openapi.spec.v3.v1.0+protobuf", PROTOBUF_V3),
        ("text/html", None),
        ("application", None),
        ("application/json/x", None),
        (",;,", None),
    ],
)
def test_encoding_is_the_best_accepted_one(accept: str, encoding: Encoding | None) -> None:
    assert accepted(accept, (JSON, PROTOBUF_V3)) == encoding


def test_v2_has_a_media_type_of_its_own() -> None:
    spellings = ("spec.v2@v1.0", "spec.v2.v1.0")
    for spelling in spellings:
        found = accepted(f"application/com.github.proto-openapi.{spelling}+protobuf", (JSON, PROTOBUF_V2))
        assert found is PROTOBUF_V2
    assert PROTOBUF_V2.content_type == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


def test_whole_answer_says_how_to_ask_again() -> None:
    response = serve()
    assert (response.status, response.body) == (200, DATA)
    assert response.headers == [
        ("content-type", "text/plain"),
        ("etag", ETAG),
        ("accept-ranges", "bytes"),
        ("last-modified", LAST_MODIFIED),
    ]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"if_none_match": ETAG}, 304),
        ({"if_none_match": f'"other", W/{ETAG}'}, 304),
        ({"if_none_match": "*"}, 304),
        ({"if_none_match": '"other"'}, 200),
        ({"if_none_match": '"other"', "if_modified_since": LATER}, 200),
        ({"if_modified_since": LAST_MODIFIED}, 304),
        ({"if_modified_since": LATER}, 304),
        ({"if_modified_since": EARLIER}, 200),
        ({"if_modified_since": "yesterday"}, 200),
        ({"if_modified_since": "Sun, 01 Jan 2090 00:00:00 +999999999999999999"}, 200),
        ({"if_modified_since": "Sun, 01 Jan 2090 00:00:00 +0000"}, 200),
        ({"if_modified_since": "Sun, 31 Feb 2090 00:00:00 GMT"}, 200),
        ({"if_modified_since": "Sun, 01 jan 2090 00:00:00.5 GMT"}, 304),
        ({"if_modified_since": "Sunday, 01-Jan-60 00:00:00 GMT"}, 304),
        ({"if_modified_since": "Sunday, 01-Jan-70 00:00:00 GMT"}, 200),
        ({"if_modified_since": "Sun Jan  1 00:00:00 2090"}, 304),
        ({"if_modified_since": "Sun Jan 11 00:00:00 2090"}, 304),
        ({"if_modified_since": "1" * 100_000}, 200),
        ({"if_unmodified_since": EARLIER}, 412),
        ({"if_unmodified_since": LAST_MODIFIED}, 200),
        ({"if_match": ETAG}, 200),
        ({"if_match": '"other"'}, 412),
    ],
)
def test_conditions_decide_the_status(headers: dict[str, str], status: int) -> None:
    response = serve_with(headers)
    assert response.status == status
    assert response.body == (DATA if status == 200 else b"")


def test_not_modified_keeps_the_etag_and_drops_what_describes_the_body() -> None:
    assert serve(if_none_match=ETAG).headers == [("etag", ETAG)]
    assert serve(etag="", if_modified_since=LATER).headers == [("last-modified", LAST_MODIFIED)]


def test_writing_methods_fail_the_condition_instead() -> None:
    assert serve("POST", if_none_match=ETAG).status == 412
    assert serve("POST", if_modified_since=LATER).status == 200


@pytest.mark.parametrize(
    ("header", "body", "content_range"),
    [
        ("bytes=0-3", b"0123", "bytes 0-3/10"),
        ("bytes=8-", b"89", "bytes 8-9/10"),
        ("bytes=-2", b"89", "bytes 8-9/10"),
        ("bytes=-99", DATA, "bytes 0-9/10"),
        ("bytes=5-99", b"56789", "bytes 5-9/10"),
        ("bytes= +0 - 1,", b"01", "bytes 0-1/10"),
        ("bytes=99-,0-1", b"01", "bytes 0-1/10"),
        ("bytes=-0", b"", "bytes 10-9/10"),
    ],
)
def test_range_is_cut_out(header: str, body: bytes, content_range: str) -> None:
    response = serve(range=header)
    assert (response.status, response.body) == (206, body)
    assert ("content-range", content_range) in response.headers


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=10-,99-"])
def test_range_outside_is_refused(header: str) -> None:
    response = serve(range=header)
    assert (response.status, response.body) == (416, b"invalid range: failed to overlap\n")
    assert ("content-range", "bytes */10") in response.headers


@pytest.mark.parametrize(
    "header",
    [
        "bytes=5-4",
        "bytes=-",
        "lines=0-1",
        "bytes=a-b",
        "bytes=0-" + "9" * 30,
        "bytes=0-\u0663",
        "bytes=\u0663-",
        "bytes=1_0-",
        "bytes=--5",
        "bytes",
        "bytes=5",
        "Bytes=0-1",
        "bytes=\u00a00-1",
    ],
)
def test_range_that_is_none_is_refused(header: str) -> None:
    response = serve(range=header)
    assert (response.status, response.body) == (416, b"invalid range\n")
    assert "content-range" not in dict(response.headers)


@pytest.mark.parametrize("header", ["bytes=0-1,4-5", "bytes=", "bytes=,"])
def test_several_ranges_or_none_get_everything(header: str) -> None:
    assert (serve(range=header).status, serve(range=header).body) == (200, DATA)


@pytest.mark.parametrize(("condition", "status"), [(ETAG, 206), ('"other"', 200), (LAST_MODIFIED, 206), (EARLIER, 200)])
def test_range_is_for_the_content_that_if_range_names(condition: str, status: int) -> None:
    assert serve(range="bytes=0-1", if_range=condition).status == status


def test_who_has_it_from_the_second_of_its_last_change_gets_it_again() -> None:
    assert serve(etag="", changed=MODIFIED, if_modified_since=LAST_MODIFIED).status == 200
    assert serve(etag="", changed=MODIFIED, if_modified_since=LATER).status == 304
    assert serve(etag="", changed=MODIFIED - timedelta(seconds=1), if_modified_since=LAST_MODIFIED).status == 304


def test_of_very_many_ranges_none_is_read() -> None:
    response = serve(range="bytes=" + ",".join(["0-1"] * 1002))
    assert (response.status, response.body) == (200, DATA)
    counts = [calls(partial(serve, range="bytes=" + "0-1," * many)) for many in (2_000, 200_000)]
    assert counts[0] == counts[1]
    counts = [calls(partial(serve, if_none_match='"a",' * many)) for many in (2_000, 200_000)]
    assert counts[0] == counts[1]

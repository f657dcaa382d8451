"""Events as lines of text."""

from __future__ import annotations

import pytest

from steersman.audit.legacy import event_line

RECORD = (
    b'"level":"Metadata","auditID":"id-1","stage":"ResponseComplete","requestURI":"/api/v1/pods?a=\\"b","verb":"list",'
    b'"user":{"username":"admin","uid":"u","groups":["system:masters","b c"]},"sourceIPs":["192.0.2.1","127.0.0.1"],'
    b'"userAgent":"curl/8","objectRef":{"resource":"pods","namespace":"default","apiVersion":"v1"},'
    b'"responseStatus":{"metadata":{},"code":200},"requestReceivedTimestamp":"2026-11-23T13:15:49.790000Z",'
    b'"stageTimestamp":"2026-11-23T13:15:50.000001Z"}'
)


def test_an_event_is_one_line_as_upstream_has_it() -> None:
    assert event_line(RECORD) == (
        '2026-11-23T13:15:49.79Z AUDIT: id="id-1" stage="ResponseComplete" ip="192.0.2.1" method="list" user="admin" '
        'groups="\\"system:masters\\",\\"b c\\"" as="<self>" asgroups="<lookup>" user-agent="curl/8" '
        'namespace="default" uri="/api/v1/pods?a=\\"b" response="200"'
    )


def test_the_servers_own_log_has_no_queries() -> None:
    assert 'uri="/api/v1/pods" ' in event_line(RECORD, with_query=False)


@pytest.mark.parametrize(
    ("record", "shown"),
    [
        (b'"stage":"RequestReceived"}', 'ip="<unknown>" method="" user="<none>" groups="<none>"'),
        (b'"stage":"RequestReceived"}', 'namespace="<none>" uri="" response="<deferred>"'),
        (b'"impersonatedUser":{"username":"jane"}}', 'as="jane" asgroups="<lookup>"'),
        (b'"impersonatedUser":{"username":"jane","groups":["a"]}}', 'as="jane" asgroups="\\"a\\""'),
        (b'"user":{"username":"x"}}', 'user="x" groups="<none>"'),
    ],
)
def test_what_is_not_known_is_said(record: bytes, shown: str) -> None:
    assert shown in event_line(record)


def test_whole_seconds_have_no_fraction() -> None:
    assert event_line(b'"requestReceivedTimestamp":"2026-11-23T13:15:49.000000Z"}').startswith("2026-11-23T13:15:49Z ")

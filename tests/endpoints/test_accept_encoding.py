"""Acceptance of gzip, with the answers of kube-apiserver and its handler of OpenAPI documents."""

from __future__ import annotations

import pytest

from steersman.endpoints.accept_encoding import accepts_gzip, rates_gzip
from steersman.net.message import Headers

OBJECTS = {"gzip", "identity, gzip", "gzip;q=0, gzip", "gzip, gzip;q=0", "deflate,gzip", ";q=1,gzip", "gzip;q=x, gzip"}
DOCUMENTS = {
    "gzip",
    "identity, gzip",
    "gzip;q=0, gzip",
    "deflate,gzip",
    ";q=1,gzip",
    "gzip;q=1",
    "gzip;q=0.5",
    "GZIP",
    "gzip ;q=1",
    "gzip;q=0;x",
    "gzip;q=x, gzip",
    "gzip, gzip;q=x",
}
OTHERS = {"", "*", "gzip;q=0", "gzip;q=-1", "gzip;q=", "gzip;q=x", "identity", "x-gzip"}


@pytest.mark.parametrize("text", sorted(OBJECTS | DOCUMENTS | OTHERS))
def test_gzip_is_accepted_as_upstream_reads_it(text: str) -> None:
    headers = Headers.from_pairs([("accept-encoding", text)])
    assert accepts_gzip(headers) is (text in OBJECTS or text == "gzip, gzip;q=x")
    assert rates_gzip(headers) is (text in DOCUMENTS)


def test_of_several_fields_the_first_counts() -> None:
    headers = Headers.from_pairs([("accept-encoding", "identity"), ("accept-encoding", "gzip")])
    assert not accepts_gzip(headers)
    assert not rates_gzip(headers)
    assert not accepts_gzip(Headers.from_pairs([]))

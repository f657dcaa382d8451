"""The ConfigMap with the authentication settings for aggregated servers."""

from __future__ import annotations

import pytest

from steersman.controlplane.authentication_info import combined
from tests.authentication.certificates import root

NAMES = "requestheader-allowed-names"
PROXY = "requestheader-client-ca-file"
OTHERS = root("others").decode()
OURS = {
    "client-ca-file": root("clients").decode(),
    PROXY: root("proxies").decode(),
    NAMES: '["a"]',
    "requestheader-username-headers": '["X-Remote-User"]',
}
EMPTY = {"requestheader-group-headers": "[]", "requestheader-extra-headers-prefix": "[]"}


def test_it_is_ours_where_there_is_nothing() -> None:
    assert combined({}, OURS) == OURS | EMPTY


def test_it_stays_as_it_is_if_it_has_what_is_ours() -> None:
    there = combined({}, OURS)
    assert combined(there, OURS) == there


def test_several_servers_share_it() -> None:
    there = combined({}, OURS | {NAMES: '["b","a"]', "client-ca-file": OTHERS})
    found = combined(there | {"unknown": "goes"}, OURS)
    assert found[NAMES] == '["b","a"]'
    assert found["client-ca-file"] == OTHERS + OURS["client-ca-file"]
    assert "unknown" not in found
    assert combined(there, OURS | {NAMES: '["c"]'})[NAMES] == '["b","a","c"]'


def test_certificates_that_cannot_be_read_are_left_out() -> None:
    bad = "-----BEGIN CERTIFICATE-----\nbm8=\n-----END CERTIFICATE-----\n"
    assert combined({"client-ca-file": bad}, OURS)["client-ca-file"] == OURS["client-ca-file"]


def test_without_proxies_there_is_nothing_about_them() -> None:
    ours = {"client-ca-file": OURS["client-ca-file"]}
    assert combined({}, ours) == ours
    assert combined({NAMES: '["x"]'}, ours) == ours


@pytest.mark.parametrize("text", ["no", '{"a": 1}', "[1]"])
def test_lists_that_cannot_be_read_are_told_of(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        combined({NAMES: text}, OURS)

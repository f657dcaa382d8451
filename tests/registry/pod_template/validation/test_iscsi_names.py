"""Names of iSCSI nodes."""

from __future__ import annotations

import re
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.registry.pod_template.validation.iscsi_names import is_iscsi_name

_QUALIFIED = re.compile(r"iqn\.\d{4}-\d{2}\.([a-zA-Z0-9.-]+)(:[^,;*&$|\t\n\f\r ]+)\Z", re.ASCII)


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("iqn.2015-02.example.com:test", True),
        ("iqn.2015-02.example.com:a:b", True),
        ("iqn.2015-02.example.com:", False),
        ("iqn.2015-02.example.com", False),
        ("iqn.2015-02.example.com:a b", False),
        ("eui.0123456789abcdef", True),
        ("eui.0123", False),
        ("naa.62004567BA64678D0123456789ABCDEF", True),
        ("abc", False),
    ],
)
def test_a_name_is_of_one_of_three_formats(name: str, valid: bool) -> None:
    assert is_iscsi_name(name) is valid


@given(st.text(st.sampled_from("iqn.2-01:a, "), max_size=40).map(lambda rest: f"iqn.2001-04.{rest}"))
def test_a_qualified_name_is_what_its_pattern_finds(name: str) -> None:
    assert is_iscsi_name(name) == bool(_QUALIFIED.search(name))


def test_a_name_that_begins_again_and_again_is_read_in_one_pass() -> None:
    start = process_time()
    assert not is_iscsi_name("iqn.2001-04." * 100_000)
    assert process_time() - start < 10

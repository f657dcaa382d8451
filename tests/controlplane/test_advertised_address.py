"""The advertised address of the server."""

from __future__ import annotations

import pytest

from steersman.controlplane.addresses import advertised_address


@pytest.mark.parametrize("given", ["10.1.2.3", "2001:db8::1", "::ffff:10.1.2.3"])
def test_an_address_that_others_can_reach_is_told(given: str) -> None:
    assert advertised_address(given) == given


@pytest.mark.parametrize("given", ["127.0.0.1", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1", "::ffff:0.0.0.0"])
def test_one_that_leads_only_here_is_not_told_also_as_ipv6(given: str) -> None:
    assert advertised_address(given) != given

"""Flags about the lifetime of service account tokens."""

from __future__ import annotations

from pathlib import Path

import pytest

from steersman.cli.flags import parse
from steersman.controlplane.options import OptionsError


@pytest.mark.parametrize(("text", "seconds"), [("0", 0), ("1h", 3600), ("4294967296s", 1 << 32)])
def test_the_longest_life_of_a_token(text: str, seconds: int) -> None:
    options = parse([f"--service-account-max-token-expiration={text}"], Path("/nowhere"))
    assert options.service_account_max_token_expiration == seconds


@pytest.mark.parametrize("text", ["59m59s", "4294967297s", "-1h", "year"])
def test_a_life_that_is_too_short_or_too_long_is_refused(text: str) -> None:
    with pytest.raises(OptionsError, match="--service-account-max-token-expiration: "):
        parse([f"--service-account-max-token-expiration={text}"], Path("/nowhere"))


def test_tokens_in_pods_are_extended_unless_that_is_off() -> None:
    assert parse([], Path("/nowhere")).service_account_extend_token_expiration
    options = parse(["--service-account-extend-token-expiration=false"], Path("/nowhere"))
    assert not options.service_account_extend_token_expiration

"""How long a connection is trusted on which nothing comes, as k8s.io/apimachinery `util/net` configures it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache

from msgspec import Struct

from steersman.net.ascii import is_digits


class Health(Struct, frozen=True):
    """In seconds: without any frame until the other side is asked whether it is there (0: never), and until it has
    answered."""

    read_idle: float = 30.0
    ping_timeout: float = 15.0
    confirms_resets: bool = True
    """Whether the other side is asked (PING) if it has heard of a stream that this side has given up. Servers of gRPC
    hang up on who asks them that too often."""


def health(variables: Mapping[str, str]) -> Health:
    """As the environment says, or by default."""
    usual = Health()
    return Health(
        _seconds(variables.get("HTTP2_READ_IDLE_TIMEOUT_SECONDS", ""), usual.read_idle),
        _seconds(variables.get("HTTP2_PING_TIMEOUT_SECONDS", ""), usual.ping_timeout),
    )


@cache
def health_of_environment() -> Health:
    """As the variables were when this was first asked."""
    return health(os.environ)


def _seconds(text: str, usual: float) -> float:
    return float(text) if is_digits(text) else usual

"""Health check intervals of HTTP/2 connections, as k8s.io/apimachinery `util/net` configures them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache

from msgspec import Struct

from steersman.net.ascii import is_digits


class Health(Struct, frozen=True):
    """Intervals in seconds.

    `read_idle` is the time without any frame before a PING is sent (0: never); `ping_timeout` is the time allowed for
    its answer.
    """

    read_idle: float = 30.0
    ping_timeout: float = 15.0
    confirms_resets: bool = True
    """True if resets of streams are confirmed by PING. gRPC servers close connections that send many PINGs."""


def health(variables: Mapping[str, str]) -> Health:
    """Return the configuration from environment variables, with defaults."""
    usual = Health()
    return Health(
        _seconds(variables.get("HTTP2_READ_IDLE_TIMEOUT_SECONDS", ""), usual.read_idle),
        _seconds(variables.get("HTTP2_PING_TIMEOUT_SECONDS", ""), usual.ping_timeout),
    )


@cache
def health_of_environment() -> Health:
    """Return the configuration from the process environment as it was at the first call."""
    return health(os.environ)


def _seconds(text: str, usual: float) -> float:
    return float(text) if is_digits(text) else usual

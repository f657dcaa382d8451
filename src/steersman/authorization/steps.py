"""Descriptions of the authorizers in a chain, from flags or from a configuration file."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from steersman.authorization.interface import Decision
from steersman.machinery.go.strings import to_lower

WEBHOOK: Final = "Webhook"
MODES: Final = ("ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", WEBHOOK)
"""Authorizer types in the order in which error messages list them."""


class Webhook(Struct, frozen=True, kw_only=True):
    """Settings of one webhook. Times are in seconds; a TTL of 0 disables caching."""

    kubeconfig: str
    version: str = "v1"
    authorized_ttl: float = 300.0
    unauthorized_ttl: float = 30.0
    timeout: float = 30.0
    on_error: Decision = Decision.NO_OPINION
    conditions: tuple[str, ...] = ()


class Step(Struct, frozen=True):
    """One authorizer of the chain: `type` is one of MODES; metrics use `name`."""

    type: str
    name: str
    webhook: Webhook | None = None


def step_of(mode: str) -> Step:
    """Return the step of a mode that has no further settings."""
    return Step(mode, to_lower(mode))

"""The lifetime of requested tokens: limited, and a year in pods unless that is disabled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.authentication.v1 import TokenRequest
from steersman.machinery.codec.serializer import from_plain
from steersman.registry.core.nodes import NODES
from steersman.registry.core.pods.pods import PODS
from steersman.registry.core.serviceaccounts import SERVICE_ACCOUNTS
from steersman.registry.core.token_requests import WARN_ONLY_SECONDS, create_token
from steersman.registry.services import EXTENDED_SECONDS


async def requested(c: Any, settings: dict[str, Any], **spec: Any) -> tuple[Any, list[str]]:
    """Return the answer to a token request, and its warnings."""
    ctx = c.context(c.stores["", "serviceaccounts"], "ns", "sa")
    answer = await create_token(replace(c.services, **settings), ctx, "sa", from_plain(TokenRequest, {"spec": spec}))
    return answer, ctx.warnings


@pytest.mark.parametrize(("limit", "given", "lives"), [(3600, 7200, 3600), (7200, 7200, 7200), (0, 7200, 7200)])
async def test_a_token_is_held_to_the_limit(cluster: Callable[..., Any], limit: int, given: int, lives: int) -> None:
    c = await cluster(SERVICE_ACCOUNTS)
    await c.create("serviceaccounts", {"metadata": {"name": "sa"}})
    answer, warnings = await requested(c, {"max_token_expiration": limit}, expirationSeconds=given)
    (claims,) = c.signed
    assert claims["exp"] - claims["iat"] == answer.spec.expiration_seconds == lives
    shortened = f"requested expiration of {given} seconds shortened to {lives} seconds"
    assert warnings == ([] if lives == given else [shortened])


@pytest.mark.parametrize(("extends", "lives"), [(True, EXTENDED_SECONDS), (False, WARN_ONLY_SECONDS)])
async def test_a_pods_token_lives_for_a_year_unless_that_is_off(
    cluster: Callable[..., Any], extends: bool, lives: int
) -> None:
    c = await cluster(SERVICE_ACCOUNTS, PODS, NODES)
    await c.create("serviceaccounts", {"metadata": {"name": "sa"}})
    spec = {"serviceAccountName": "sa", "containers": [{"name": "c", "image": "i"}]}
    await c.create("pods", {"metadata": {"name": "p"}, "spec": spec})
    reference = {"kind": "Pod", "apiVersion": "v1", "name": "p"}
    settings = {"extend_token_expiration": extends}
    await requested(c, settings, boundObjectRef=reference, expirationSeconds=WARN_ONLY_SECONDS)
    (claims,) = c.signed
    assert claims["exp"] - claims["iat"] == lives
    assert ("warnafter" in claims["kubernetes.io"]) == extends

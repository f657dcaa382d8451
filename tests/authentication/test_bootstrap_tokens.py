"""Bootstrap tokens of joining nodes."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.authentication.bootstrap_tokens import BootstrapSecret, BootstrapTokens

TOKEN = "abcdef.0123456789abcdef"
DATA = {
    "token-id": b"abcdef",
    "token-secret": b"0123456789abcdef",
    "usage-bootstrap-authentication": b"true",
    "auth-extra-groups": b"system:bootstrappers:b,system:bootstrappers:a",
}
NOW = 1_700_000_000.0


def judged(
    token: str = TOKEN, *, audiences: tuple[str, ...] = (), deleted: bool = False, type: str = "", **data: Any
) -> Any:
    given = {key.replace("_", "-"): value for key, value in data.items()}
    members = {key: value for key, value in {**DATA, **given}.items() if value is not None}
    secret = BootstrapSecret(deleted, type or "bootstrap.kubernetes.io/token", members)
    tokens = BootstrapTokens(("api",), lambda name: secret if name == "bootstrap-token-abcdef" else None, lambda: NOW)
    return tokens.authenticate_token(token, audiences)


def test_a_token_is_that_of_its_secret() -> None:
    found = judged(audiences=("other", "api"))
    assert found is not None
    assert found.user.name == "system:bootstrap:abcdef"
    assert found.user.groups == (
        "system:bootstrappers",
        "system:bootstrappers:a",
        "system:bootstrappers:b",
        "system:authenticated",
    )
    assert found.audiences == ("api",)
    assert judged(auth_extra_groups=None).user.groups == ("system:bootstrappers", "system:authenticated")
    assert judged(expiration=b"2030-01-01T00:00:00Z") is not None


@pytest.mark.parametrize(
    "wrong",
    [
        {"token": "abcdef.0123456789abcdeg"},
        {"token": "abcdeg.0123456789abcdef"},
        {"token": "ABCDEF.0123456789abcdef"},
        {"token": TOKEN + "\n"},
        {"token": "abcdef"},
        {"audiences": ("other",)},
        {"deleted": True},
        {"type": "Opaque"},
        {"token_id": b"other1"},
        {"token_secret": None},
        {"usage_bootstrap_authentication": None},
        {"usage_bootstrap_authentication": b"True"},
        {"expiration": b"2020-01-01T00:00:00Z"},
        {"expiration": b"tomorrow"},
        {"auth_extra_groups": b"system:bootstrappers:"},
        {"auth_extra_groups": b"system:masters"},
        {"auth_extra_groups": b"system:bootstrappers:a,"},
    ],
)
def test_any_other_is_nobodys(wrong: dict[str, Any]) -> None:
    assert judged(**wrong) is None

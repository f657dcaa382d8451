"""Service account tokens in secrets: valid while the secret holds the token and the account exists."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.core.v1 import ObjectReference, ServiceAccount
from steersman.api.meta.v1 import ObjectMeta
from steersman.authentication.interface import AuthenticationError, TokenIdentity
from steersman.authentication.legacy_tokens import LegacyTokens, TokenSecret
from steersman.authentication.service_account_keys import ServiceAccountKeys, make_signing_key
from steersman.authentication.service_account_metrics import ServiceAccountMetrics
from steersman.authentication.service_account_tokens import sign
from steersman.machinery.built_in.token_secrets import INVALID_SINCE, ISSUER, LAST_USED
from steersman.machinery.metrics import Registry
from steersman.machinery.values import times

KEYS = ServiceAccountKeys(make_signing_key(), trusted=True)
PREFIX = "kubernetes.io/serviceaccount/"


def claims(**changed: str | None) -> dict[str, Any]:
    """Return the claims of a valid token; None removes a claim."""
    made = {
        "iss": ISSUER,
        "sub": "system:serviceaccount:ns:robot",
        f"{PREFIX}namespace": "ns",
        f"{PREFIX}secret.name": "t",
        f"{PREFIX}service-account.name": "robot",
        f"{PREFIX}service-account.uid": "u1",
    }
    names = {"namespace": "namespace", "secret": "secret.name", "account": "service-account.name"}
    names["uid"] = "service-account.uid"
    for key, value in changed.items():
        made[PREFIX + names[key] if key in names else key] = value  # type: ignore[assignment]
    return {key: value for key, value in made.items() if value is not None}


class Cluster:
    """A service account, a secret with a token, and the reported uses of the token."""

    def __init__(self, token: str = "", *, looks_up: bool = True, labels: dict[str, str] | None = None) -> None:
        self.token = token or sign(KEYS, claims())
        self.secret: TokenSecret | None = TokenSecret(False, self.token.encode(), labels or {})
        self.account: ServiceAccount | None = ServiceAccount(metadata=ObjectMeta(name="robot", uid="u1"))
        self.used: list[tuple[str, str]] = []
        self.metrics = ServiceAccountMetrics(Registry())
        self._tokens = LegacyTokens(
            lambda: KEYS,
            ("api",),
            self._find_secret,
            self._find_account,
            lambda *key: self.used.append(key),
            self.metrics,
            looks_up=looks_up,
        )

    def _find_secret(self, namespace: str, name: str) -> TokenSecret | None:
        return self.secret if (namespace, name) == ("ns", "t") else None

    def _find_account(self, namespace: str, name: str) -> ServiceAccount | None:
        return self.account if (namespace, name) == ("ns", "robot") else None

    async def ask(self, token: str = "") -> TokenIdentity | None:
        answer = self._tokens.authenticate_token(token or self.token, ())
        return answer if answer is None or isinstance(answer, TokenIdentity) else await answer

    async def refusal(self, token: str = "") -> str:
        with pytest.raises(AuthenticationError) as raised:
            await self.ask(token)
        return str(raised.value)


async def test_whose_a_token_is() -> None:
    cluster = Cluster()
    found = await cluster.ask()
    assert found is not None
    assert (found.user.name, found.user.uid) == ("system:serviceaccount:ns:robot", "u1")
    assert found.user.groups == ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated")
    assert found.audiences == ("api",)
    assert cluster.used == [("ns", "t")]


async def test_other_issuers_are_left_to_others() -> None:
    assert await Cluster().ask(sign(KEYS, claims(iss="https://other"))) is None
    assert await Cluster().ask("token") is None


async def test_its_use_is_told_once_a_day() -> None:
    for day, told in ((times.today(), 0), ("2020-01-01", 1)):
        cluster = Cluster(labels={LAST_USED: day})
        await cluster.ask()
        assert len(cluster.used) == told


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"sub": None}, "sub claim is missing"),
        ({"namespace": None}, "namespace claim is missing"),
        ({"secret": None}, "secretName claim is missing"),
        ({"account": None}, "serviceAccountName claim is missing"),
        ({"uid": None}, "serviceAccountUID claim is missing"),
        ({"sub": "system:serviceaccount:ns:other"}, "sub claim is invalid"),
        ({"secret": "other"}, "Token has been invalidated"),
        ({"secret": "t/x"}, "Token has been invalidated"),
        ({"uid": "u2"}, "ServiceAccount UID (u1) does not match claim (u2)"),
    ],
)
async def test_claims_must_be_true(changed: dict[str, str | None], why: str) -> None:
    token = sign(KEYS, claims(**changed))
    assert await Cluster(token).refusal() == why


async def test_what_ends_a_token() -> None:
    assert await Cluster("another").refusal(sign(KEYS, claims())) == "Token does not match server's copy"
    cluster = Cluster()
    cluster.account = None
    assert await cluster.refusal() == 'serviceaccounts "robot" not found'
    cluster.account = ServiceAccount(metadata=ObjectMeta(uid="u1", deletion_timestamp="2026-01-01T00:00:00Z"))
    assert await cluster.refusal() == "ServiceAccount ns/robot has been deleted"
    cluster.secret = TokenSecret(True, cluster.token.encode(), {})
    assert await cluster.refusal() == "Token has been invalidated"
    marked = Cluster(labels={INVALID_SINCE: "2026-01-01"})
    assert "has been marked invalid" in await marked.refusal()
    assert marked.used == [("ns", "t")]


async def test_another_key_is_not_trusted() -> None:
    forged = sign(ServiceAccountKeys(make_signing_key(), trusted=True), claims())
    assert "no keys found" in await Cluster(forged).refusal()


async def test_without_looking_up_a_token_outlives_its_secret() -> None:
    cluster = Cluster(looks_up=False)
    cluster.secret = cluster.account = None
    found = await cluster.ask()
    assert found is not None
    assert found.user.name == "system:serviceaccount:ns:robot"
    assert await cluster.refusal(sign(KEYS, claims(uid=None))) == "serviceAccountUID claim is missing"


@pytest.mark.parametrize("is_generated", [True, False])
async def test_what_is_told_of_its_use(is_generated: bool) -> None:
    cluster = Cluster()
    assert cluster.account is not None
    cluster.account.secrets = [ObjectReference(name="t" if is_generated else "other")]
    found = await cluster.ask()
    assert found is not None
    kind = "autogenerated" if is_generated else "manual"
    assert found.remarks.annotations == (
        ("authentication.k8s.io/legacy-token", "system:serviceaccount:ns:robot"),
        (f"authentication.k8s.io/legacy-token-{kind}-secret", "t"),
    )
    assert [text.split(" ", 1)[0] for text in found.remarks.warnings] == (["Use"] if is_generated else [])
    metrics = cluster.metrics
    assert [each.value() for each in (metrics.legacy, metrics.generated, metrics.manual, metrics.invalid)] == [
        1,
        int(is_generated),
        int(not is_generated),
        0,
    ]


async def test_tokens_that_are_marked_are_counted() -> None:
    cluster = Cluster(labels={INVALID_SINCE: "2020-01-01"})
    await cluster.refusal()
    assert cluster.metrics.invalid.value() == 1

"""Authentication by tokens of an issuer, including discovery."""

from __future__ import annotations

import asyncio
import base64
import threading
import time
from typing import Any

import pytest

from steersman.api.apiserver.v1 import JWTAuthenticator
from steersman.authentication.interface import AuthenticationError, TokenIdentity
from steersman.authentication.jwt import authenticator as module
from steersman.authentication.jwt import key_set, provider
from steersman.authentication.jwt.authenticator import IssuerAuthenticator
from steersman.authentication.jwt.id_token import ALGORITHMS
from steersman.authentication.jwt.metrics import JWTMetrics
from steersman.authentication.user import UserInfo
from steersman.machinery.metrics import Registry
from steersman.work.threads import WorkerThreads
from tests.authentication.jwt.issuer import EC, RSA, STRANGER, URL, Issuer, token

import msgspec  # isort: skip

USUAL = {
    "issuer": {"url": URL, "audiences": ["steersman"]},
    "claimMappings": {"username": {"claim": "sub", "prefix": "acme:"}, "groups": {"claim": "groups", "prefix": "g:"}},
}


class Known:
    """An authenticator that has discovered its issuer."""

    def __init__(self, issuer: Issuer, configuration: Any = USUAL, algorithms: tuple[str, ...] = ALGORITHMS) -> None:
        self.registry = Registry()
        given = msgspec.convert(configuration, JWTAuthenticator)
        metrics = JWTMetrics(self.registry, "me").for_issuer(URL)
        self.judge = IssuerAuthenticator(given, algorithms, issuer, metrics)  # type: ignore[arg-type]

    async def __aenter__(self) -> Known:
        await self.judge.discovered()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.judge.close()

    async def of(self, text: str) -> TokenIdentity | None:
        found = self.judge.authenticate_token(text, ("api",))
        return found if found is None or isinstance(found, TokenIdentity) else await found

    async def user_of(self, text: str) -> UserInfo:
        found = await self.of(text)
        assert found is not None
        return found.user

    async def refused(self, text: str) -> str:
        with pytest.raises(AuthenticationError) as caught:
            await self.of(text)
        return str(caught.value)


async def test_a_token_is_the_users_that_its_claims_name() -> None:
    issuer = Issuer(RSA, EC)
    async with Known(issuer) as known:
        found = await known.of(token(groups=["a", "b"], jti="1"))
        assert found is not None
        assert (found.user.name, found.user.groups) == ("acme:jane", ("g:a", "g:b", "system:authenticated"))
        assert found.user.extra == {"authentication.kubernetes.io/credential-id": ("JTI=1",)}
        assert found.audiences == ("api",)
        assert (await known.user_of(token(EC, algorithm="ES256"))).name == "acme:jane"
        assert (await known.user_of(token(algorithm="PS512", aud=["x", "steersman"]))).name == "acme:jane"
        assert len(issuer.asked) == 2  # the keys are known from the first token on


async def test_tokens_of_others_are_not_judged() -> None:
    async with Known(Issuer(RSA)) as known:
        for other in (token(iss="https://other.acme.com"), "a.b.c", "t", token(iss=None), "." * 3, token() + ".x"):
            assert await known.of(other) is None


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"aud": "x"}, 'oidc: verify token: oidc: expected audience "steersman" got ["x"]'),
        ({"exp": 1}, "oidc: verify token: oidc: token is expired (Token Expiry: 1970-01-01 00:00:01 +0000 UTC)"),
        ({"exp": None}, "oidc: verify token: oidc: token is expired (Token Expiry: 1970-01-01 00:00:00 +0000 UTC)"),
        ({"sub": None}, 'oidc: parse username claims "sub": claim not present'),
        (
            {"sub": 5},
            "oidc: verify token: oidc: failed to unmarshal claims: json: cannot unmarshal number into Go "
            "struct field idToken.sub of type string",
        ),
        (
            {"groups": [1]},
            'oidc: parse groups claim "groups": json: cannot unmarshal array into Go value of type string',
        ),
        ({"_claim_names": {"groups": ""}}, "oidc: verify token: oidc: failed to obtain source from claim name"),
        ({"_claim_names": {"groups": "a"}}, "oidc: verify token: oidc: source does not exist"),
    ],
)
async def test_what_is_wrong_with_a_token_is_told_in_upstreams_words(given: dict[str, Any], text: str) -> None:
    async with Known(Issuer(RSA)) as known:
        assert await known.refused(token(**given)) == text
        exposed = "\n".join(known.registry.expose())
        assert 'jwt_authenticator_latency_seconds_count{result="failure"' in exposed


async def test_a_token_whose_time_has_not_come_is_refused_but_for_a_minute() -> None:
    async with Known(Issuer(RSA)) as known:
        assert await known.of(token(nbf=int(time.time()) + 30)) is not None
        assert "before the nbf (not before) time" in await known.refused(token(nbf=int(time.time()) + 300))


NOT_SIGNED = "oidc: verify token: failed to verify signature: failed to verify id token signature"


async def test_signatures_of_others_are_refused() -> None:
    async with Known(Issuer(RSA)) as known:
        good = token()
        head, payload, signature = good.split(".")
        for text in (
            token(STRANGER),
            token(kid="other"),
            f"{head}.{token(sub='root').split('.')[1]}.{signature}",
            token(header={"crit": ["b64"], "b64": True}),
        ):
            assert await known.refused(text) == NOT_SIGNED
        assert "unsupported algorithm" in await known.refused(f"eyJhbGciOiJub25lIn0.{payload}.")
        assert (await known.of(token(kid=""))) is not None  # any key may have signed it


async def test_only_the_algorithms_of_the_flag_count() -> None:
    async with Known(Issuer(RSA, EC), algorithms=("RS256",)) as known:
        text = await known.refused(token(EC, algorithm="ES256"))
        expected = 'oidc: id token signed with unsupported algorithm, expected ["RS256"] got "ES256"'
        assert text == f"oidc: verify token: {expected}"


async def test_keys_that_were_changed_are_fetched_when_a_token_needs_them() -> None:
    issuer = Issuer(RSA)
    async with Known(issuer) as known:
        assert await known.of(token()) is not None
        issuer.documents[f"{URL}/keys"] = Issuer(EC).documents[f"{URL}/keys"]
        waiting = [known.of(token(EC, algorithm="ES256", jti=str(number))) for number in range(5)]
        assert all(await asyncio.gather(*waiting))
        assert len(issuer.asked) == 3  # once for all of them
        assert await known.refused(token()) == NOT_SIGNED  # the old one is gone


async def test_keys_that_are_good_for_a_while_are_not_fetched_again() -> None:
    issuer = Issuer(RSA, good_for=3600.0)
    async with Known(issuer) as known:
        assert await known.of(token()) is not None
        for _ in range(3):
            assert await known.refused(token(STRANGER)) == NOT_SIGNED
        assert len(issuer.asked) == 2


async def test_known_keys_count_while_the_issuer_is_down() -> None:
    issuer = Issuer(RSA)
    async with Known(issuer) as known:
        assert await known.of(token()) is not None
        issuer.documents[f"{URL}/keys"] = None
        assert await known.of(token(sub="tom")) is not None
        text = await known.refused(token(STRANGER))
        expected = "failed to verify signature: fetching keys oidc: get keys failed connection refused"
        assert text == f"oidc: verify token: {expected}"
        issuer.documents[f"{URL}/keys"] = b'{"keys": [{"kty": "XX"}]}'
        assert "unknown json web key type 'XX'" in await known.refused(token(STRANGER))


async def test_an_issuer_that_comes_later_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY", 0.01)
    issuer = Issuer(RSA)
    documents, issuer.documents = issuer.documents, {}
    known = Known(issuer)
    await asyncio.sleep(0.02)
    assert await known.refused(token()) == "oidc: authenticator not initialized"
    assert "is not healthy: connection refused" in known.judge.fault
    issuer.documents = documents
    async with known:
        assert known.judge.fault == ""
        assert await known.of(token()) is not None


async def test_groups_may_stand_with_another_issuer() -> None:
    issuer, other = Issuer(RSA), "https://groups.acme.com"
    issuer.documents[f"{other}/.well-known/openid-configuration"] = msgspec.json.encode(
        {"issuer": other, "jwks_uri": f"{other}/keys"}
    )
    issuer.documents[f"{other}/keys"] = Issuer(EC).documents[f"{URL}/keys"]
    issuer.documents[f"{other}/jane"] = token(EC, algorithm="ES256", iss=other, groups=["far"]).encode()
    claims: dict[str, Any] = {
        "_claim_names": {"groups": "src"},
        "_claim_sources": {"src": {"endpoint": f"{other}/jane", "access_token": "secret"}},
    }
    async with Known(issuer) as known:
        first = await known.refused(token(**claims))
        assert f'verifier not initialized for issuer: "{other}"' in first
        await asyncio.sleep(0.05)
        assert (await known.user_of(token(**claims))).groups == ("g:far", "system:authenticated")
        assert (f"{other}/jane", "secret") in issuer.asked
        issuer.documents[f"{other}/jane"] = token(EC, algorithm="ES256", iss=other).encode()
        assert "did not contain claim: groups" in await known.refused(token(**claims))
        issuer.documents[f"{other}/jane"] = token(STRANGER, iss=other, groups=["far"]).encode()
        assert "verify distributed claim token" in await known.refused(token(**claims))


async def test_the_query_of_where_groups_stand_is_told_to_nobody() -> None:
    issuer, other = Issuer(RSA), "https://groups.acme.com"
    where = f"{other}/jane?access_token=secret"
    claims: dict[str, Any] = {"_claim_names": {"groups": "src"}, "_claim_sources": {"src": {"endpoint": where}}}
    async with Known(issuer) as known:
        for document in (None, b"none", token(EC, algorithm="ES256", iss=other).encode()):
            if document is not None:
                issuer.documents[where] = document
            assert "secret" not in await known.refused(token(**claims))


async def test_many_keys_are_tried_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []

    def verified(*given: Any) -> bytes | None:
        threads.append(threading.current_thread())
        return key_set.verified(*given)

    monkeypatch.setattr(provider, "verified", verified)
    issuer = Issuer(*[EC] * 100, RSA, good_for=3600.0)
    async with Known(issuer) as known:
        assert await known.of(token()) is not None  # it names its key
        assert set(threads) == {threading.main_thread()}
        threads.clear()
        assert await known.of(token(kid="")) is not None
        assert await known.refused(token(STRANGER, kid="")) == NOT_SIGNED
        assert len(threads) == 2
        assert threading.main_thread() not in threads


def test_a_key_whose_exponent_go_refuses_is_none() -> None:
    large = {"kty": "RSA", "n": RSA.as_dict()["n"], "e": base64.urlsafe_b64encode(b"\x80\0\0\x01").decode().strip("=")}
    (key,) = key_set.read_keys(msgspec.json.encode({"keys": [large]}))
    assert key.key is None


def configured(*rules: str, username: str = "claims.sub") -> dict[str, Any]:
    return {
        "issuer": USUAL["issuer"],
        "claimMappings": {"username": {"expression": username}},
        "claimValidationRules": [{"expression": each, "message": "no"} for each in rules],
    }


@pytest.mark.parametrize(
    "rule",
    [
        "claims.sub.matches('^[a-z]{2,90}$')",
        "claims.sub.find('[a-z]{1,91}$') != ''",
        "claims.sub.findAll('[a-z]{1,92}').size() > 0",
    ],
)
async def test_a_rule_with_a_pattern_is_evaluated_beside_the_loop(rule: str) -> None:
    """A rule that compiles a pattern is started on the event loop and then repeated in a worker thread."""
    async with Known(Issuer(RSA), configured(rule)) as known:
        found = await known.of(token(sub="jane"))
        assert found is not None
        assert found.user.name == "jane"
    async with Known(Issuer(RSA), configured(f"!({rule})")) as known:
        assert await known.refused(token(sub="jane")) == (
            f"oidc: error evaluating claim validation expression: validation expression '!({rule})' failed: no"
        )


async def test_an_expression_that_costs_much_is_evaluated_beside_the_loop() -> None:
    turns: list[bool] = []
    run = WorkerThreads.run

    async def noted(*args: Any) -> Any:
        turns.append(True)
        return await run(*args)

    expression = "dyn(claims.groups).filter(each, dyn(claims.groups).exists(other, other == each))[0]"
    async with Known(Issuer(RSA), configured(username=expression)) as known:
        await known.of(token(groups=["a"]))  # for which keys are read
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(WorkerThreads, "run", noted)
            found = await known.of(token(groups=["a", "b"]))
            assert found is not None
            assert (found.user.name, turns) == ("a", [])
            found = await known.of(token(groups=[f"group-{number}" for number in range(100)]))
            assert found is not None
            assert (found.user.name, turns) == ("group-0", [True])
        assert "exceeded" in await known.refused(token(groups=[f"group-{number}" for number in range(1000)]))

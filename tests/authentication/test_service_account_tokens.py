"""Service account tokens as credentials: signed by the server's own keys, and only while the bound objects exist."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from functools import partial
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st
from joserfc import jws
from joserfc.jwk import OctKey, RSAKey

from steersman.api.core.v1 import Node, Pod, Secret, ServiceAccount
from steersman.api.meta.v1 import ObjectMeta
from steersman.authentication.interface import NO_REMARKS, AuthenticationError, TokenIdentity
from steersman.authentication.service_account_claims import BoundObjects
from steersman.authentication.service_account_keys import ServiceAccountKeys
from steersman.authentication.service_account_metrics import ServiceAccountMetrics
from steersman.authentication.service_account_tokens import MAX_TOKEN, ServiceAccountTokens, sign
from steersman.machinery.metrics import Registry
from steersman.machinery.values.times import format_time, parse
from tests.example_counts import examples

ISSUER = "https://issuer.example.com"
API = ("https://api.example.com", "api")
NOW = 1_800_000_000
KINDS = {"service_account": ServiceAccount, "pod": Pod, "secret": Secret, "node": Node}


def private_pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def public_pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


RSA = rsa.generate_private_key(65537, 2048)
OTHER_RSA = rsa.generate_private_key(65537, 2048)
P256 = ec.generate_private_key(ec.SECP256R1())
RSA_KEYS, P256_KEYS = ServiceAccountKeys(private_pem(RSA)), ServiceAccountKeys(private_pem(P256))


class Cluster:
    """The objects that tokens are bound to, and a fixed clock."""

    def __init__(self, keys: ServiceAccountKeys = RSA_KEYS) -> None:
        self.now = float(NOW)
        self.stored: dict[tuple[str, str, str], Any] = {}
        self.keys = keys
        self.put("service_account", "ns", "robot", "u1")
        objects = BoundObjects(**{kind: partial(self._find, kind) for kind in KINDS})
        self.metrics = ServiceAccountMetrics(Registry())
        self.tokens = ServiceAccountTokens(
            lambda: self.keys, [ISSUER, "old"], API, objects, self.metrics, clock=lambda: self.now
        )

    def _find(self, kind: str, namespace: str, name: str) -> Any:
        return self.stored.get((kind, namespace, name))

    def put(self, kind: str, namespace: str, name: str, uid: str, deleted: str | None = None) -> None:
        metadata = ObjectMeta(name=name, namespace=namespace, uid=uid, deletion_timestamp=deleted)
        self.stored[kind, namespace, name] = KINDS[kind](metadata=metadata)

    async def ask(self, token: str, *audiences: str) -> TokenIdentity | None:
        answer = self.tokens.authenticate_token(token, audiences)
        return answer if answer is None or isinstance(answer, TokenIdentity) else await answer

    async def refusal(self, token: str, *audiences: str) -> str:
        with pytest.raises(AuthenticationError) as raised:
            await self.ask(token, *audiences)
        return str(raised.value)


def claims(private: dict[str, Any] | None = None, **changed: Any) -> dict[str, Any]:
    """Return the claims of a valid token; None removes a claim."""
    made = {
        "aud": list(API),
        "exp": NOW + 3600,
        "iat": NOW,
        "iss": ISSUER,
        "jti": "j1",
        "kubernetes.io": {"namespace": "ns", "serviceaccount": {"name": "robot", "uid": "u1"}, **(private or {})},
        "nbf": NOW,
        "sub": "system:serviceaccount:ns:robot",
        **changed,
    }
    return {name: value for name, value in made.items() if value is not None}


def token(private: dict[str, Any] | None = None, **changed: Any) -> str:
    return sign(RSA_KEYS, claims(private, **changed))


def segment(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@pytest.mark.parametrize("keys", [RSA_KEYS, P256_KEYS], ids=["RS256", "ES256"])
async def test_a_service_account_is_known_by_its_token(keys: ServiceAccountKeys) -> None:
    identity = await Cluster(keys).ask(sign(keys, claims()), *API)
    assert identity is not None
    user = identity.user
    assert (user.name, user.uid) == ("system:serviceaccount:ns:robot", "u1")
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated")
    assert dict(user.extra) == {"authentication.kubernetes.io/credential-id": ("JTI=j1",)}
    assert identity.audiences == API


async def test_after_the_first_token_the_answer_is_there_at_once() -> None:
    cluster = Cluster()
    assert await cluster.ask(token())
    assert isinstance(cluster.tokens.authenticate_token(token(), API), TokenIdentity)


async def test_pod_and_node_of_the_token_are_told_in_extra() -> None:
    cluster = Cluster()
    cluster.put("pod", "ns", "p", "up")
    private = {"pod": {"name": "p", "uid": "up"}, "node": {"name": "gone", "uid": "un"}}
    identity = await cluster.ask(token(private, jti=None))
    assert identity is not None
    assert dict(identity.user.extra) == {
        "authentication.kubernetes.io/pod-name": ("p",),
        "authentication.kubernetes.io/pod-uid": ("up",),
        "authentication.kubernetes.io/node-name": ("gone",),
        "authentication.kubernetes.io/node-uid": ("un",),
    }


@pytest.mark.parametrize(
    ("own", "asked", "common"),
    [
        (["a", "b"], ("c", "b", "a"), ("b", "a")),
        ("a", ("a",), ("a",)),
        (None, ("elsewhere", "api"), ("api",)),
        (["api"], (), ("api",)),
    ],
)
async def test_the_audiences_are_those_asked_for_that_the_token_has(own: Any, asked: Any, common: Any) -> None:
    identity = await Cluster().ask(token(aud=own), *asked)
    assert identity is not None
    assert identity.audiences == common


async def test_a_token_for_others_is_refused() -> None:
    text = await Cluster().refusal(token(aud=["x", 'y"']), "z")
    assert text == r'token audiences ["x" "y\""] is invalid for the target audiences ["z"]'


@pytest.mark.parametrize(
    ("changed", "seconds", "text"),
    [
        ({}, 3600 + 61, "service account token has expired"),
        ({"exp": NOW + 0.9}, 61, "service account token has expired"),
        ({}, -61, "service account token is not valid yet"),
        ({"nbf": None}, -61, "service account token is issued in the future"),
    ],
)
async def test_time_counts_with_a_minute_of_grace(changed: dict[str, Any], seconds: int, text: str) -> None:
    cluster, signed = Cluster(), token(**changed)
    cluster.now = NOW + seconds
    assert await cluster.refusal(signed) == text
    cluster.now -= 1 if seconds > 0 else -1
    assert await cluster.ask(signed)


async def test_a_token_without_a_service_account_is_refused() -> None:
    cluster, signed = Cluster(), token()
    cluster.put("service_account", "ns", "robot", "u2")
    assert await cluster.refusal(signed) == "service account UID (u2) does not match claim (u1)"
    cluster.stored.clear()
    assert await cluster.refusal(signed) == 'serviceaccounts "robot" not found'


@pytest.mark.parametrize("kind", ["pod", "secret", "node"])
async def test_a_token_dies_with_what_it_is_bound_to(kind: str) -> None:
    cluster, signed = Cluster(), token({kind: {"name": "b", "uid": "ub"}})
    namespace = "" if kind == "node" else "ns"
    cluster.put(kind, namespace, "b", "ub")
    assert await cluster.ask(signed)
    cluster.put(kind, namespace, "b", "other")
    assert await cluster.refusal(signed) == f"{kind} UID (other) does not match service account {kind} ref claim (ub)"
    cluster.stored.pop((kind, namespace, "b"))
    assert await cluster.refusal(signed) == "service account token has been invalidated"


@pytest.mark.parametrize("kind", ["service_account", "pod", "secret", "node"])
async def test_what_is_being_deleted_vouches_for_a_minute(kind: str) -> None:
    cluster = Cluster()
    name, uid = ("robot", "u1") if kind == "service_account" else ("b", "ub")
    signed = token() if kind == "service_account" else token({kind: {"name": "b", "uid": "ub"}})
    moment = "2027-01-15T08:00:00Z"
    cluster.put(kind, "" if kind == "node" else "ns", name, uid, deleted=moment)
    cluster.now = NOW  # the same moment
    assert format_time(parse(moment)) == time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(NOW))
    assert await cluster.ask(signed)
    cluster.now = NOW + 60
    assert await cluster.ask(signed)
    cluster.now = NOW + 60.5
    text = "service account ns/robot has been deleted"
    assert await cluster.refusal(signed) == (
        text if kind == "service_account" else "service account token has been invalidated"
    )


@pytest.mark.parametrize(
    "reference",
    [
        {"namespace": "", "serviceaccount": {"name": "ns/robot", "uid": "u1"}},
        {"namespace": "a/b", "serviceaccount": {"name": "robot", "uid": "u1"}},
        {"namespace": "ns", "serviceaccount": {}},
        {},
    ],
)
async def test_names_that_no_object_can_have_are_not_looked_up(reference: dict[str, Any]) -> None:
    cluster = Cluster()
    cluster.stored = dict.fromkeys(
        [("service_account", "", "ns/robot"), ("service_account", "a/b", "robot"), ("service_account", "", "")],
        ServiceAccount(metadata=ObjectMeta(uid="u1")),
    )
    assert "not found" in await cluster.refusal(token(**{"kubernetes.io": reference}))


async def test_every_issuer_is_accepted_and_no_other_is_judged() -> None:
    cluster = Cluster()
    assert await cluster.ask(token(iss="old"))
    assert await cluster.ask(token(iss="https://elsewhere.example.com")) is None
    assert await cluster.ask(token(iss=None)) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a.b",
        "a.b.c",
        "a.b.c.d",
        "..",
        "{}",
        "\udcff.\udcff.\udcff",
        "ä.ö.ü",
        f"{segment('x')}.{segment({'iss': ISSUER})}.AAAA",
        f"{segment({'alg': 1})}.{segment({'iss': ISSUER})}.AAAA",
        f"{segment({'alg': 'RS256'})}.{segment([ISSUER])}.AAAA",
        f"{segment({'alg': 'RS256'})}.{segment({'iss': ISSUER})}.AAA=",
        f"{segment({'alg': 'RS256'})}.{base64.urlsafe_b64encode(b'[' * 30000).decode()}.AAAA",
        f"{base64.urlsafe_b64encode(b'[' * 300).decode()}.{segment({'iss': ISSUER})}.AAAA",
    ],
)
async def test_what_is_no_token_is_left_to_others(text: str) -> None:
    assert await Cluster().ask(text) is None


async def test_very_long_texts_are_no_tokens() -> None:
    assert await Cluster().ask(token(aud=["x" * MAX_TOKEN])) is None
    assert await Cluster().ask(token(aud=["x" * 60_000, "api"]))


async def test_any_of_the_keys_verifies_and_a_key_id_picks_one() -> None:
    cluster = Cluster(ServiceAccountKeys(private_pem(P256), [public_pem(P256), public_pem(RSA)]))
    assert await cluster.ask(token())
    payload = json.dumps(claims())
    unnamed = jws.serialize_compact({"alg": "RS256"}, payload, RSAKey(RSA, RSA))
    assert await cluster.ask(unnamed)
    wrong_name = jws.serialize_compact({"alg": "RS256", "kid": P256_KEYS.signing.key_id}, payload, RSAKey(RSA, RSA))
    assert await cluster.refusal(wrong_name) == "go-jose/go-jose: error in cryptographic primitive"
    unknown = jws.serialize_compact({"alg": "RS256", "kid": "nobody"}, payload, RSAKey(RSA, RSA))
    assert await cluster.refusal(unknown) == "invalid signature, no keys found"


async def test_a_stranger_with_our_key_id_is_refused() -> None:
    header = {"alg": "RS256", "kid": RSA_KEYS.signing.key_id}
    forged = jws.serialize_compact(header, json.dumps(claims()), RSAKey(OTHER_RSA, OTHER_RSA))
    assert await Cluster().refusal(forged) == "go-jose/go-jose: error in cryptographic primitive"


@pytest.mark.parametrize("kid", [RSA_KEYS.signing.key_id, None], ids=["with kid", "without kid"])
@pytest.mark.parametrize("form", ["none", "HS256", "HS512", "RS512", "PS256", "ES256"])
async def test_a_token_cannot_choose_its_algorithm(form: str, kid: str | None) -> None:
    header = {"alg": form, **({"kid": kid} if kid else {})}
    payload = json.dumps(claims())
    if form == "none":
        forged = f"{segment(header)}.{segment(claims())}."
    elif form.startswith("HS"):
        secret = OctKey(public_pem(RSA), public_pem(RSA))  # the public key as the secret
        forged = jws.serialize_compact(header, payload, secret, algorithms=[form])
    elif form == "ES256":
        forged = f"{segment(header)}.{segment(claims())}.{'A' * 86}"
    else:
        forged = jws.serialize_compact(header, payload, RSAKey(RSA, RSA), algorithms=[form])
    assert await Cluster().refusal(forged) == "go-jose/go-jose: error in cryptographic primitive"


@pytest.mark.parametrize("name", ["jwk", "jku", "x5c"])
async def test_a_token_cannot_bring_its_own_key(name: str) -> None:
    stranger = RSAKey(OTHER_RSA, OTHER_RSA)
    brought: Any = {"jwk": stranger.as_dict(private=False), "jku": "https://evil.example.com", "x5c": ["AAAA"]}
    header = {"alg": "RS256", name: brought[name]}
    signing_input = f"{segment(header)}.{segment(claims())}"
    signature = jws.serialize_compact({"alg": "RS256"}, "x", stranger).split(".")[2]
    assert await Cluster().refusal(f"{signing_input}.{signature}")


async def test_claims_of_another_shape_are_refused() -> None:
    assert await Cluster().refusal(token(exp="soon")) == "service account token claims could not be read"


SIGNED = {"RS256": (RSA_KEYS, sign(RSA_KEYS, claims())), "ES256": (P256_KEYS, sign(P256_KEYS, claims()))}


def warm_cluster(keys: ServiceAccountKeys) -> Cluster:
    """Return a cluster that has read its keys, and so answers at once."""
    cluster = Cluster(keys)
    asyncio.run(cluster.ask(sign(keys, claims())))
    return cluster


@pytest.mark.parametrize("algorithm", SIGNED)
@settings(max_examples=examples(300), deadline=None)
@given(data=st.data())
def test_no_bit_of_a_token_may_change(algorithm: str, data: st.DataObject) -> None:
    keys, signed = SIGNED[algorithm]
    cluster = warm_cluster(keys)
    text = signed.encode()
    assert isinstance(cluster.tokens.authenticate_token(signed, API), TokenIdentity)
    changed = bytearray(text)
    changed[data.draw(st.integers(0, len(text) - 1))] ^= data.draw(st.sampled_from([1, 2, 4, 8, 16, 32, 64, 128]))
    assert not accepted(cluster, changed.decode("utf-8", "surrogateescape"))


@pytest.mark.parametrize("algorithm", SIGNED)
def test_no_bit_of_the_end_of_a_token_may_change(algorithm: str) -> None:
    """The last character has unused bits."""
    keys, signed = SIGNED[algorithm]
    cluster = warm_cluster(keys)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=\n "
    good = [char for char in alphabet if accepted(cluster, signed[:-1] + char)]
    assert good == [signed[-1]]
    assert not any(accepted(cluster, signed + char) for char in alphabet)


def accepted(cluster: Cluster, text: str) -> bool:
    try:
        return isinstance(cluster.tokens.authenticate_token(text, API), TokenIdentity)
    except AuthenticationError:
        return False


@settings(max_examples=examples(200), deadline=None)
@given(st.text(max_size=60), st.binary(max_size=60), st.dictionaries(st.text(max_size=8), st.integers()))
def test_no_text_that_others_made_is_accepted(text: str, raw: bytes, header: dict[str, int]) -> None:
    cluster = warm_cluster(RSA_KEYS)
    signature = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
    assert not accepted(cluster, text)
    assert not accepted(cluster, f"{segment({**header, 'alg': text})}.{segment(claims())}.{signature}")
    assert not accepted(cluster, f"{segment({'alg': 'RS256', **header})}.{segment(claims())}.{signature}")
    assert not accepted(cluster, f"{segment({'alg': 'RS256', 'crit': [text], 'b64': False})}.{segment(claims())}.")


async def test_a_token_that_should_have_been_renewed_is_told_of() -> None:
    cluster = Cluster()
    old, fresh = [await cluster.ask(token({"warnafter": NOW + after})) for after in (-7, 7)]
    assert old is not None
    assert fresh is not None
    message = "subject: system:serviceaccount:ns:robot, seconds after warning threshold: 7"
    assert old.remarks.annotations == (("authentication.k8s.io/stale-token", message),)
    assert fresh.remarks is NO_REMARKS
    assert (cluster.metrics.stale.value(), cluster.metrics.valid.value()) == (1, 1)


async def test_a_token_without_audiences_is_told_of() -> None:
    cluster = Cluster()
    found = await cluster.ask(token(aud=None))
    assert found is not None
    assert found.remarks.annotations == (("authentication.k8s.io/legacy-token", "system:serviceaccount:ns:robot"),)
    assert cluster.metrics.legacy.value() == 1

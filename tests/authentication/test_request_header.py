"""Users in headers of trusted proxies."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from steersman.authentication.authorities import Authorities
from steersman.authentication.client_certificate import ClientCertificateAuthenticator
from steersman.authentication.interface import AuthenticationError, Credentials
from steersman.authentication.request_header import HeaderNames, RequestHeaderAuthenticator
from steersman.net.message import Headers
from tests.authentication.certificates import Clock, certificate, name, root

NAMES = HeaderNames.from_names(
    ("X-Remote-User", "X-Second"), ("X-Remote-Uid",), ("X-Remote-Group", "X-More"), ("X-Remote-Extra-", "X-Acme-")
)
PROXY = certificate(name((NameOID.COMMON_NAME, "proxy")))
PEM = root()
CA = ssl.PEM_cert_to_DER_cert(PEM.decode())
OTHER = ssl.PEM_cert_to_DER_cert(root("other").decode())


@pytest.fixture
def new(tmp_path: Path) -> Callable[..., RequestHeaderAuthenticator]:
    path = tmp_path / "ca.pem"
    path.write_bytes(PEM)

    def made(*allowed: str, clock: Clock | None = None) -> RequestHeaderAuthenticator:
        return RequestHeaderAuthenticator(
            NAMES, Authorities([str(path)], clock=clock or Clock()), allowed, clock=clock or Clock()
        )

    return made


def shown(*pairs: tuple[str, str], der: bytes | None = PROXY, chain: tuple[bytes, ...] = (CA,)) -> Credentials:
    return Credentials(
        client_certificate=der,
        certificate_verified=der is not None,
        headers=Headers.from_pairs(pairs),
        authorities=chain,
    )


def test_headers_name_user_uid_groups_and_extra_fields(new: Callable[..., Any]) -> None:
    user = new().authenticate(
        shown(
            ("x-remote-user", "jane"),
            ("x-remote-uid", "u"),
            ("x-more", "c"),
            ("x-remote-group", "a,b"),
            ("x-remote-group", ""),
            ("x-remote-extra-scope", "1"),
            ("x-acme-role", "r"),
            ("x-remote-extra-scope", "2"),
            ("x-remote-extra-a.com%2fteam", "t"),
            ("x-remote-extra-bad%zz", "z"),
        )
    )
    assert (user.name, user.uid, user.groups) == ("jane", "u", ("a,b", "c"))
    assert user.extra == {"scope": ("1", "2"), "role": ("r",), "a.com/team": ("t",), "bad%zz": ("z",)}


def test_the_first_header_with_a_value_names_the_user(new: Callable[..., Any]) -> None:
    assert new().authenticate(shown(("x-second", "b"), ("x-remote-user", "a"))).name == "a"
    assert new().authenticate(shown(("x-remote-user", ""), ("x-second", "b"))).name == "b"
    assert new().authenticate(shown(("x-remote-user", ""))) is None
    assert new().authenticate(shown(("x-remote-group", "a"))) is None


def test_without_a_certificate_headers_say_nothing(new: Callable[..., Any]) -> None:
    assert new().authenticate(shown(("x-remote-user", "a"), der=None, chain=())) is None


@pytest.mark.parametrize("chain", [(), (OTHER,), (CA,)])
def test_certificates_of_other_authorities_are_refused(new: Callable[..., Any], chain: tuple[bytes, ...]) -> None:
    of_other = certificate(name((NameOID.COMMON_NAME, "proxy")), issuer="other")
    with pytest.raises(AuthenticationError, match="unknown authority"):
        new().authenticate(shown(("x-remote-user", "a"), der=of_other, chain=chain))


def test_what_comes_with_the_certificate_does_not_matter_if_an_authority_signed_it(new: Callable[..., Any]) -> None:
    assert new().authenticate(shown(("x-remote-user", "a"), chain=(OTHER, CA))).name == "a"
    assert new().authenticate(shown(("x-remote-user", "a"), chain=())).name == "a"


def test_only_those_with_an_allowed_name_count(new: Callable[..., Any]) -> None:
    assert new("other", "proxy").authenticate(shown(("x-remote-user", "a"))).name == "a"
    with pytest.raises(AuthenticationError, match="x509: subject with cn=proxy is not in the allowed list"):
        new("other").authenticate(shown(("x-remote-user", "a")))


def test_certificates_that_have_ended_or_are_for_servers_are_refused(new: Callable[..., Any]) -> None:
    clock = Clock()
    authenticator = new(clock=clock)
    assert authenticator.authenticate(shown(("x-remote-user", "a"))).name == "a"
    clock.now = clock.now.replace(year=clock.now.year + 1)
    with pytest.raises(AuthenticationError, match="unknown authority"):  # whose time is over, too
        authenticator.authenticate(shown(("x-remote-user", "a")))
    server = certificate(name((NameOID.COMMON_NAME, "proxy")), usage=ExtendedKeyUsageOID.SERVER_AUTH)
    with pytest.raises(AuthenticationError, match="incompatible key usage"):
        new().authenticate(shown(("x-remote-user", "a"), der=server))


def test_what_names_a_user_is_taken_off() -> None:
    headers = Headers.from_pairs(
        [("x-remote-user", "a"), ("x-more", "b"), ("x-acme-c", "d"), ("x-remote-extra-e", "f"), ("x-other", "g")]
    )
    NAMES.clear(headers)
    assert headers.pairs == [("x-other", "g")]


def test_authorities_of_proxies_make_no_users(tmp_path: Path) -> None:
    path = tmp_path / "clients.pem"
    path.write_bytes(root("clients"))
    authenticator = ClientCertificateAuthenticator(authorities=Authorities([str(path)], clock=Clock()), clock=Clock())
    with pytest.raises(AuthenticationError, match="unknown authority"):
        authenticator.authenticate(shown())

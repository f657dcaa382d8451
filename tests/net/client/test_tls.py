"""Verification of server certificates as Go does it, with every version of Python."""

from __future__ import annotations

import asyncio
import datetime
import re
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from steersman.net.client.dial import DialError, dial
from steersman.net.client.tls import HTTP1, client_context


class Issuer:
    """A CA without key identifiers, like those of old openssl releases."""

    def __init__(self, name: str, above: Issuer | None = None) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        signer = above or self
        self.certificate = self.signed(self.name, self.key, signer, x509.BasicConstraints(True, None))

    @staticmethod
    def signed(
        name: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        signer: Issuer,
        *extensions: x509.ExtensionType,
        late: datetime.timedelta = datetime.timedelta(),
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC) - late
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(signer.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
        )
        for extension in extensions:
            builder = builder.add_extension(extension, isinstance(extension, x509.BasicConstraints))
        return builder.sign(signer.key, hashes.SHA256())

    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def server(
        self, folder: Path, common_name: str, *names: str, late: datetime.timedelta = datetime.timedelta()
    ) -> ssl.SSLContext:
        """Return a server's context with a certificate of this CA."""
        key = ec.generate_private_key(ec.SECP256R1())
        extensions = [x509.SubjectAlternativeName([x509.DNSName(name) for name in names])] if names else []
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        file = folder / "server.pem"
        file.write_bytes(
            self.signed(subject, key, self, *extensions, late=late).public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context


def shake_hands(server: ssl.SSLContext, trusted: str) -> None:
    """Perform a handshake for the name `hook` in memory. Raises ssl.SSLCertVerificationError."""
    context = client_context(HTTP1)
    context.load_verify_locations(cadata=trusted)
    one, other = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [context.wrap_bio(one, other, server_hostname="hook"), server.wrap_bio(other, one, server_side=True)]
    while ends:
        for end in list(ends):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            ends.remove(end)


def test_authorities_without_key_identifiers_are_trusted(tmp_path: Path) -> None:
    issuer = Issuer("root")
    shake_hands(issuer.server(tmp_path, "x", "hook"), issuer.pem())


def test_an_authority_in_the_middle_can_be_the_one_trusted(tmp_path: Path) -> None:
    middle = Issuer("middle", Issuer("root"))
    shake_hands(middle.server(tmp_path, "x", "hook"), middle.pem())


def test_another_authority_of_the_same_name_is_not_trusted(tmp_path: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(Issuer("root").server(tmp_path, "x", "hook"), Issuer("root").pem())


def test_a_common_name_is_no_name_of_a_host(tmp_path: Path) -> None:
    issuer = Issuer("root")
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shake_hands(issuer.server(tmp_path, "hook"), issuer.pem())


async def told(server: ssl.SSLContext, trusted: str, name: str = "hook") -> str:
    """Return the error of connecting to a server, or ""."""

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server) as listener:
        context = client_context(HTTP1)
        context.load_verify_locations(cadata=trusted)
        port = listener.sockets[0].getsockname()[1]
        with pytest.raises(DialError) as caught:
            await dial("127.0.0.1", port, context, server_name=name)
        with pytest.raises(DialError) as again:
            await dial("127.0.0.1", port, context, server_name=name)
    assert str(again.value) == str(caught.value)
    return str(caught.value)


UNKNOWN = "tls: failed to verify certificate: x509: certificate signed by unknown authority"


async def test_another_authority_of_the_same_name_is_told_of(tmp_path: Path) -> None:
    assert await told(Issuer("root").server(tmp_path, "x", "hook"), Issuer("root").pem()) == (
        f'{UNKNOWN} (possibly because of "x509: ECDSA verification failure" while trying to verify candidate authority '
        'certificate "root")'
    )


async def test_of_an_authority_of_another_name_there_is_nothing_to_tell(tmp_path: Path) -> None:
    assert await told(Issuer("root").server(tmp_path, "x", "hook"), Issuer("other").pem()) == UNKNOWN


REFUSED = "tls: failed to verify certificate: x509: "


@pytest.mark.parametrize(
    ("common_name", "names", "asked", "text"),
    [
        ("x", ["foo.bar", "foo"], "hook", "certificate is valid for foo.bar, foo, not hook"),
        (
            "x",
            ["foo.bar"],
            "127.0.0.1",
            "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs",
        ),
        ("hook", [], "hook", "certificate relies on legacy Common Name field, use SANs instead"),
        ("*.a.svc", [], "hook.a.svc", "certificate relies on legacy Common Name field, use SANs instead"),
        ("other", [], "hook", "certificate is not valid for any names, but wanted to match hook"),
        (
            "x",
            [f"n{number}" for number in range(100)],
            "hook",
            "certificate is valid for 100 names, but none matched hook",
        ),
    ],
)
async def test_a_certificate_for_other_names_is_told_with_these(
    tmp_path: Path, common_name: str, names: list[str], asked: str, text: str
) -> None:
    issuer = Issuer("root")
    assert await told(issuer.server(tmp_path, common_name, *names), issuer.pem(), asked) == f"{REFUSED}{text}"


@pytest.mark.parametrize(("late", "how"), [(3, "after"), (-3, "before")])
async def test_a_certificate_whose_time_is_over_is_told_with_it(tmp_path: Path, late: int, how: str) -> None:
    issuer = Issuer("root")
    server = issuer.server(tmp_path, "hook", "hook", late=datetime.timedelta(hours=late))
    moment = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
    text = rf"{REFUSED}certificate has expired or is not yet valid: current time {moment} is {how} {moment}"
    assert re.fullmatch(text, await told(server, issuer.pem()))

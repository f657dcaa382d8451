"""Certificates that are asked for."""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Sequence
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from tools.controllers.world import World

CLIENT: Final = "kubernetes.io/kube-apiserver-client"
KUBELET: Final = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING: Final = "kubernetes.io/kubelet-serving"
CLIENT_USAGES: Final = ("digital signature", "client auth")
SERVING_USAGES: Final = ("digital signature", "key encipherment", "server auth")
NODE: Final = (("O", "system:nodes"), ("CN", "system:node:n"))
_OIDS: Final = {"O": NameOID.ORGANIZATION_NAME, "CN": NameOID.COMMON_NAME, "OU": NameOID.ORGANIZATIONAL_UNIT_NAME}


def pem(subject: Sequence[tuple[str, str]], names: Sequence[x509.GeneralName] = ()) -> str:
    """A request, as objects have it."""
    name = x509.Name([x509.NameAttribute(_OIDS[part], value) for part, value in subject])
    builder = x509.CertificateSigningRequestBuilder().subject_name(name)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    made = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return base64.b64encode(made.public_bytes(Encoding.PEM)).decode()


def ask(world: World, name: str, request: str, signer: str, usages: Sequence[str], **spec: Any) -> None:
    world.create(
        {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": {"name": name},
            "spec": {"request": request, "signerName": signer, "usages": list(usages), **spec},
        }
    )


def approve(world: World, *names: str, condition: str = "Approved") -> None:
    for name in names:
        condition_of_it = {"type": condition, "status": "True", "reason": "ByHand", "message": "m"}
        world.patch("CertificateSigningRequest", name, {"status": {"conditions": [condition_of_it]}}, "approval")


def signed(world: World) -> None:
    """Certificates of users: as long as requested, at most a year, at least ten minutes."""
    world.also("CertificateSigningRequest")
    user = [("CN", "alice"), ("OU", "unit"), ("O", "dev"), ("O", "ops")]
    names = [x509.DNSName("a.example"), x509.IPAddress(ipaddress.ip_address("10.0.0.1")), x509.RFC822Name("a@b.c")]
    for name, seconds in (("usual", None), ("short", 3600), ("shortest", 600), ("long", 999999999), ("day", 86400)):
        spec = {} if seconds is None else {"expirationSeconds": seconds}
        ask(world, name, pem(user, names), CLIENT, ("client auth", "key encipherment"), **spec)
        approve(world, name)
    ask(world, "unit", pem([]), CLIENT, ("client auth",))
    approve(world, "unit")
    world.snapshot("signed")


def refused(world: World) -> None:
    """Approved requests that Kubernetes' signers refuse to sign."""
    world.also("CertificateSigningRequest")
    host, address = [x509.DNSName("h")], [x509.IPAddress(ipaddress.ip_address("10.0.0.1"))]
    mail, uri = [x509.RFC822Name("a@b.c")], [x509.UniformResourceIdentifier("spiffe://x")]
    plain = pem([("CN", "alice")])
    asked = [
        ("usage", plain, CLIENT, ("client auth", "server auth")),
        ("no-usage", plain, CLIENT, ("digital signature",)),
        ("organization", pem([("O", "dev"), ("CN", "system:node:n")]), KUBELET, CLIENT_USAGES),
        ("two", pem([("O", "dev"), *NODE]), KUBELET, CLIENT_USAGES),
        ("host", pem(NODE, host), KUBELET, CLIENT_USAGES),
        ("address", pem(NODE, address), KUBELET, CLIENT_USAGES),
        ("mail", pem(NODE, mail), KUBELET, CLIENT_USAGES),
        ("uri", pem(NODE, uri), KUBELET, CLIENT_USAGES),
        ("name", pem([("O", "system:nodes"), ("CN", "n")]), KUBELET, CLIENT_USAGES),
        ("usages", pem(NODE), KUBELET, SERVING_USAGES),
        ("nowhere", pem(NODE), SERVING, SERVING_USAGES),
        ("serving-mail", pem(NODE, [*host, *mail]), SERVING, SERVING_USAGES),
        ("serving-usages", pem(NODE, host), SERVING, CLIENT_USAGES),
        ("elsewhere", plain, "example.com/signer", ("client auth",)),
    ]
    for name, request, signer, usages in asked:
        ask(world, name, request, signer, usages)
        approve(world, name)
    ask(world, "denied", plain, CLIENT, ("client auth",))
    approve(world, "denied", condition="Denied")
    ask(world, "waiting", plain, CLIENT, ("client auth",))
    world.snapshot("refused")


def kubelets(world: World) -> None:
    """Client certificates are approved by themselves where the user may ask for them, serving ones by hand."""
    world.also("CertificateSigningRequest")
    ask(world, "client", pem(NODE), KUBELET, CLIENT_USAGES)
    ask(world, "rsa", pem(NODE), KUBELET, ("digital signature", "key encipherment", "client auth"))
    names = [x509.DNSName("n"), x509.IPAddress(ipaddress.ip_address("fd00::1"))]
    ask(world, "serving", pem(NODE, names), SERVING, SERVING_USAGES)
    ask(world, "other", pem([("O", "dev"), ("CN", "system:node:n")]), KUBELET, CLIENT_USAGES)
    world.snapshot("asked")
    approve(world, "serving")
    world.snapshot("approved")


SCENARIOS = {f"certificates_{each.__name__}": each for each in (signed, refused, kubelets)}

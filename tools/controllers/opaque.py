"""Readable form of tokens (their claims) and certificates (their contents)."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any, Final

from cryptography import x509

Plain = dict[str, Any]

MINUTE: Final = 60
"""To so many seconds the time is told for which certificates are good."""


def readable(obj: Plain) -> Plain:
    """An object with what differs each time put into words."""
    reader = _READERS.get(obj.get("kind", ""))
    return obj if reader is None else reader(obj)


def _secret(obj: Plain) -> Plain:
    data: dict[str, Any] = {
        name: base64.b64decode(each).decode(errors="replace") for name, each in (obj.get("data") or {}).items()
    }
    if "BEGIN CERTIFICATE" in data.get("ca.crt", ""):
        data["ca.crt"] = "CA"
    if data.get("token", "").count(".") == 2:
        data["token"] = [json.loads(_decoded(part)) for part in data["token"].split(".")[:2]]
        data["token"][0].pop("kid")
    return {**obj, "data": data}


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _request(obj: Plain) -> Plain:
    spec = {name: each for name, each in obj["spec"].items() if name not in ("username", "groups", "extra", "uid")}
    status = dict(obj.get("status") or {})
    if status.get("certificate"):
        status["certificate"] = _certificate(base64.b64decode(status["certificate"]))
    return {**obj, "spec": {**spec, "request": "REQUEST"}, "status": status}


def _certificate(pem: bytes) -> Plain:
    found = x509.load_pem_x509_certificate(pem)
    lasts = (found.not_valid_after_utc - found.not_valid_before_utc).total_seconds()
    extensions = []
    for each in found.extensions:
        value = "KEY" if isinstance(each.value, x509.AuthorityKeyIdentifier) else str(each.value)
        extensions.append([each.oid.dotted_string, each.critical, value])
    return {
        "subject": found.subject.rfc4514_string(),
        "lasts": round(lasts / MINUTE),
        "extensions": extensions,
        "version": str(found.version),
    }


_READERS: Final[dict[str, Callable[[Plain], Plain]]] = {"Secret": _secret, "CertificateSigningRequest": _request}

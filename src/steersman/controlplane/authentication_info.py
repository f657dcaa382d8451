"""The ConfigMap kube-system/extension-apiserver-authentication, by which aggregated servers can trust this one.

Follows pkg/controlplane/controller/clusterauthenticationtrust. Several servers may write it: each merges its own data
into the existing data.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from steersman.controlplane.options import Options
from steersman.machinery.go.pem import blocks
from steersman.server.certificates import CertificateFiles

logger = logging.getLogger(__name__)

_CLIENT_CA: Final = "client-ca-file"
_PROXY_CA: Final = "requestheader-client-ca-file"
_LISTS: Final = (
    "requestheader-username-headers",
    "requestheader-uid-headers",
    "requestheader-group-headers",
    "requestheader-extra-headers-prefix",
    "requestheader-allowed-names",
)
_LEFT_OUT_IF_EMPTY: Final = "requestheader-uid-headers"
_SLACK: Final = timedelta(minutes=5)
"""Time for which a certificate is kept after its expiry."""
_LINE: Final = 64


def authentication_info(options: Options, files: CertificateFiles) -> dict[str, str]:
    """Return this server's data: client authorities, and proxy authorities with header names. Raises OSError."""
    info = {_CLIENT_CA: Path(options.client_ca_file or files.ca).read_text(errors="replace")}
    if not options.requestheader_client_ca_file:
        return info
    info[_PROXY_CA] = Path(options.requestheader_client_ca_file).read_text(errors="replace")
    values = (
        options.requestheader_username_headers,
        options.requestheader_uid_headers,
        options.requestheader_group_headers,
        options.requestheader_extra_headers_prefix,
        options.requestheader_allowed_names,
    )
    return info | {name: _encoded(value) for name, value in zip(_LISTS, values, strict=True)}


def combined(there: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
    """Return the merged data of the ConfigMap. Raises ValueError for existing lists that cannot be decoded."""
    lists = {name: _union(_decoded(there.get(name, "")), _decoded(ours.get(name, ""))) for name in _LISTS}
    info = {name: _bundle(there.get(name, ""), ours.get(name, "")) for name in (_CLIENT_CA, _PROXY_CA)}
    info = {name: text for name, text in info.items() if text}
    if _PROXY_CA in info:
        info |= {name: _encoded(each) for name, each in lists.items() if each or name != _LEFT_OUT_IF_EMPTY}
    return info


def _encoded(values: Iterable[str]) -> str:
    return json.dumps(list(values), separators=(",", ":"), ensure_ascii=False)


def _decoded(text: str) -> list[str]:
    names = json.loads(text) if text else []
    if names is None:
        return []
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise ValueError(f"{text!r} is not a list of strings")
    return names


def _union(one: list[str], other: list[str]) -> list[str]:
    return list(dict.fromkeys((*one, *other)))


def _bundle(there: str, ours: str) -> str:
    """Return the certificates of both bundles, each once, without the expired ones."""
    certificates = list(dict.fromkeys((*_certificates(there), *_certificates(ours))))
    if there and certificates != list(_certificates(there)):
        certificates = list(_unexpired(certificates))  # parsing certificates needs a package that is slow to import
    return "".join(map(_pem, certificates))


def _certificates(text: str) -> Iterator[bytes]:
    return (each.content for each in blocks(text.encode()) if each.type == "CERTIFICATE")


def _unexpired(certificates: Iterable[bytes]) -> Iterator[bytes]:
    from cryptography.x509 import load_der_x509_certificate

    now = datetime.now(UTC)
    for each in certificates:
        try:
            if load_der_x509_certificate(each).not_valid_after_utc > now - _SLACK:
                yield each
        except ValueError:
            logger.warning("leaving out an authority's certificate that cannot be parsed")


def _pem(der: bytes) -> str:
    text = base64.b64encode(der).decode()
    lines = (text[at : at + _LINE] for at in range(0, len(text), _LINE))
    return "".join(("-----BEGIN CERTIFICATE-----\n", *(f"{line}\n" for line in lines), "-----END CERTIFICATE-----\n"))

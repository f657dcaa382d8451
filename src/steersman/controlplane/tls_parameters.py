"""TLS parameters of flags, by Go's names and numbers: least version, cipher suites, key exchange groups."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Sequence
from typing import Final

from steersman.controlplane.options import OptionsError
from steersman.machinery.errors.field import quote
from steersman.machinery.suggestions import known_names_hint

logger = logging.getLogger(__name__)

_VERSIONS: Final = {"VersionTLS12": ssl.TLSVersion.TLSv1_2, "VersionTLS13": ssl.TLSVersion.TLSv1_3}
_OLD_VERSIONS: Final = ("VersionTLS10", "VersionTLS11")
_SUITES: Final = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
}
"""Suites of TLS 1.2 by their names in kube-apiserver's flag."""
_INSECURE_SUITES: Final = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
}
"""Suites that Go calls insecure."""
_SUITES_NOBODY_HAS: Final = frozenset(
    (
        "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
        "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
        "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
        "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
        "TLS_RSA_WITH_RC4_128_SHA",
    )
)
"""Suites of the flag that OpenSSL does not have."""
_SUITES_OF_TLS_1_3: Final = frozenset(
    ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
)
"""Suites that are always offered, as in Go."""
_SUITES_OF_HTTP2: Final = ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256")
_CURVES: Final = {
    4588: "X25519MLKEM768",
    4587: "SecP256r1MLKEM768",
    4589: "SecP384r1MLKEM1024",
    29: "X25519",
    23: "P-256",
    24: "P-384",
    25: "P-521",
}
"""OpenSSL's names of key exchange groups by Go's numbers (crypto/tls CurveID), in Go's order of preference."""
_LARGEST_CURVE: Final = (1 << 16) - 1

SUITE_NAMES: Final = tuple(sorted({*_SUITES, *_INSECURE_SUITES, *_SUITES_OF_TLS_1_3}))
"""Suite names that the flag accepts."""


def min_version(name: str) -> ssl.TLSVersion:
    """Return the least TLS version. Raises OptionsError."""
    if name in _OLD_VERSIONS:
        raise OptionsError(f"--tls-min-version: {name} is not supported: TLS 1.2 is the oldest version here")
    if name and name not in _VERSIONS:
        raise OptionsError(f"unknown tls version {quote(name)}{known_names_hint(name, _VERSIONS)}")
    return _VERSIONS.get(name, ssl.TLSVersion.TLSv1_2)


def cipher_suites(names: Sequence[str]) -> list[str]:
    """Return OpenSSL's names of these suites, without those of TLS 1.3. Raises OptionsError."""
    known = _SUITES | _INSECURE_SUITES
    suites = []
    for name in names:
        if name in _SUITES_NOBODY_HAS:
            raise OptionsError(f"--tls-cipher-suites: {name} is not supported: OpenSSL does not have it")
        if name in _SUITES_OF_TLS_1_3:
            continue
        if name not in known:
            raise OptionsError(
                f"Cipher suite {name} not supported or doesn't exist{known_names_hint(name, SUITE_NAMES)}"
            )
        if name in _INSECURE_SUITES:
            logger.warning("Use of insecure cipher '%s' detected.", name)
        suites.append(known[name])
    return suites


def check_suites_of_http2(names: Sequence[str]) -> None:
    """Raise OptionsError for suites without one that HTTP/2 over TLS 1.2 requires (RFC 9113 9.2.2)."""
    if names and not any(each in names for each in _SUITES_OF_HTTP2):
        raise OptionsError(
            "error configuring http2: http2: TLSConfig.CipherSuites is missing an HTTP/2-required AES_128_GCM_SHA256 "
            f"cipher (need at least one of {' or '.join(_SUITES_OF_HTTP2)})"
        )


def curves(numbers: Sequence[int]) -> tuple[str, ...]:
    """Return OpenSSL's names of these key exchange groups, in Go's order of preference. Raises OptionsError."""
    seen: set[int] = set()
    for each in numbers:
        if not 0 < each <= _LARGEST_CURVE:
            raise OptionsError(f"curve preference {each} is out of range (must be 1-{_LARGEST_CURVE})")
        if each in seen:
            raise OptionsError(f"duplicate curve preference {each}")
        if each not in _CURVES:
            raise OptionsError(f"curve preference {each} is not supported by the current Go version")
        seen.add(each)
    return tuple(name for number, name in _CURVES.items() if number in seen)

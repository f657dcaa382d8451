"""The file of `--authentication-config`: an AuthenticationConfiguration (apiserver.config.k8s.io)."""

from __future__ import annotations

from typing import Final

from steersman.api.apiserver.v1 import AuthenticationConfiguration
from steersman.machinery.codec.configuration import read_document
from steersman.machinery.codec.strict import DecodeError

_KINDS: Final = {
    (f"apiserver.config.k8s.io/{version}", "AuthenticationConfiguration"): AuthenticationConfiguration
    for version in ("v1", "v1beta1", "v1alpha1")
}


def read_configuration(data: bytes) -> AuthenticationConfiguration:
    """Return the configuration in a file, not validated. Raises DecodeError with upstream's text."""
    if not data:
        raise DecodeError("empty config data")
    return read_document(data, _KINDS)

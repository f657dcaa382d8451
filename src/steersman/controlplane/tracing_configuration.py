"""The file of `--tracing-config-file`: a TracingConfiguration (apiserver.config.k8s.io)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from steersman.api.apiserver.v1 import TracingConfiguration
from steersman.controlplane.options import OptionsError
from steersman.machinery.codec.configuration import read_document
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.errors import field
from steersman.machinery.errors.field import FieldError, quote
from steersman.machinery.go.os_errors import reason
from steersman.machinery.go.urls import UrlError, parse, parse_error_message
from steersman.machinery.private_files import read_bounded

_KINDS: Final = {
    (f"apiserver.config.k8s.io/{version}", "TracingConfiguration"): TracingConfiguration
    for version in ("v1", "v1beta1", "v1alpha1")
}
_SCHEMES: Final = frozenset({"dns", "unix", "unix-abstract"})
_MILLION: Final = 1_000_000


def tracing_configuration(path: str) -> TracingConfiguration:
    """Return the valid configuration in a file. Raises OptionsError."""
    failed = "failed to read tracing config: "
    try:
        data = read_bounded(Path(path))
    except OSError as error:
        why = f"open {path}: {reason(error)}" if error.errno else error
        raise OptionsError(f"{failed}unable to read tracing configuration from {quote(path)}: {why}") from None
    try:
        document = read_document(data, _KINDS)
    except DecodeError as error:
        raise OptionsError(f"{failed}unable to decode tracing configuration data: {error}") from None
    if errors := list(_errors(document)):
        raise OptionsError(f"failed to validate tracing configuration: {field.aggregate(errors)}")
    return document


def _errors(found: TracingConfiguration) -> Iterator[FieldError]:
    rate = found.sampling_rate_per_million
    if rate is not None:
        path = field.Path("samplingRatePerMillion")
        if rate < 0:
            yield field.invalid(path, rate, "sampling rate must be positive")
        if rate > _MILLION:
            yield field.invalid(path, rate, "sampling rate per million must be less than or equal to one million")
    if found.endpoint is not None:
        yield from _endpoint_errors(found.endpoint)


def _endpoint_errors(endpoint: str) -> Iterator[FieldError]:
    path = field.Path("endpoint")
    whole = endpoint if "//" in endpoint else f"dns://{endpoint}"
    try:
        scheme = parse(whole, of_request=False).scheme
    except UrlError as error:
        yield field.invalid(path, whole, parse_error_message(whole, error))
        return
    if scheme not in _SCHEMES:
        yield field.invalid(
            path,
            whole,
            f"unsupported scheme: {scheme}.  Options are none, dns, unix, or unix-abstract.  See "
            "https://github.com/grpc/grpc/blob/master/doc/naming.md",
        )

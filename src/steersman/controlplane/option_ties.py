"""Checks of options that depend on each other: combinations that kube-apiserver refuses or warns of, with its texts.

Combinations that depend on the content of a file are checked by its reader.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Final

from steersman.controlplane.options import Options, OptionsError
from steersman.machinery.errors.field import quote
from steersman.machinery.validation.ip import unmapped
from steersman.machinery.values.durations import format_duration
from steersman.net.ascii import lower

_WARNED_BELOW: Final = 3607
"""Seconds: smallest `--service-account-max-token-expiration` with which late use of extended tokens can be reported."""
_EXTENDED: Final = 365 * 24 * 60 * 60
"""Lifetime of a pod's token in seconds with `--service-account-extend-token-expiration`."""
_STANDARD_HEADERS: Final = (
    ("requestheader_username_headers", "X-Remote-User", "header"),
    ("requestheader_group_headers", "X-Remote-Group", "header"),
    ("requestheader_extra_headers_prefix", "X-Remote-Extra-", "header prefix"),
)


def check_ties(options: Options) -> None:
    """Raise OptionsError for the first combination of options with which kube-apiserver does not start."""
    _check_tokens(options)
    _check_priority_and_fairness(options)
    _check_transport_security(options.strict_transport_security_directives)
    headers = options.requestheader_uid_headers
    if headers and "x-remote-uid" not in map(lower, headers):
        raise OptionsError(
            "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - API aggregation "
            "will not work"
        )
    if options.faults and options.workers > 1:
        raise OptionsError(
            "--faults needs --workers=1: Faults count requests, which several processes cannot do together"
        )


def check_families(options: Options, ranges: tuple[IPv4Network | IPv6Network, ...], advertised: str) -> None:
    """Raise OptionsError if the ranges of Services do not fit each other or the advertised address."""
    if len(ranges) > 2:
        raise OptionsError("--service-cluster-ip-range must not contain more than two entries")
    if len(ranges) == 2 and ranges[0].version == ranges[1].version:
        raise OptionsError(
            "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family"
        )
    if options.endpoint_reconciler_type != "none" and ranges[0].version != unmapped(ip_address(advertised)).version:
        raise OptionsError(
            f"service IP family {quote(str(ranges[0]))} must match public address family {quote(advertised)}"
        )


def warnings_of(options: Options) -> Iterator[str]:
    """Yield kube-apiserver's warnings about combinations with which it starts."""
    if options.anonymous_auth and not options.lets_anonymous_in:
        yield (
            "AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false. "
            "You should use a different authorizer"
        )
    for name, header, kind in _STANDARD_HEADERS:
        value = getattr(options, name)
        if value and header.lower() not in map(lower, value):
            flag = name.replace("_", "-")
            yield f"--{flag} is set without specifying the standard {header} {kind} - API aggregation will not work"
    longest = options.service_account_max_token_expiration
    if options.service_account_extend_token_expiration and longest:
        shown = format_duration(longest * 1_000_000_000)
        if longest < _WARNED_BELOW:
            yield (
                "service-account-extend-token-expiration is true, in order to correctly trigger safe transition logic, "
                f"service-account-max-token-expiration must be set longer than {_WARNED_BELOW} seconds "
                f"(currently {shown})"
            )
        if longest < _EXTENDED:
            yield (
                f"service-account-extend-token-expiration is true, enabling tokens valid up to {_EXTENDED} seconds, "
                f"which is longer than service-account-max-token-expiration set to {shown}"
            )


def _check_tokens(options: Options) -> None:
    seen: set[str] = set()
    for issuer in options.service_account_issuer:
        if issuer in seen:
            raise OptionsError(f"service-account-issuer {quote(issuer)} is already specified")
        seen.add(issuer)
    address = options.service_account_jwks_uri
    if address and lower(address.partition(":")[0]) != "https":
        raise OptionsError(f"service-account-jwks-uri requires https scheme, parsed as: {address}")


def _check_priority_and_fairness(options: Options) -> None:
    """Raise OptionsError if the API of priority and fairness is enabled but not served."""
    if not options.enable_priority_and_fairness:
        return
    for level in ("flowcontrol.apiserver.k8s.io/v1", "api/ga", "api/all"):
        value = options.runtime_config.get(level)
        if value == "false":
            raise OptionsError(f"--runtime-config={level}=false conflicts with --enable-priority-and-fairness=true")
        if value == "true":
            return


def _check_transport_security(directives: tuple[str, ...]) -> None:
    for each in directives:
        name, _, value = each.partition("=")
        if each not in ("includeSubDomains", "preload") and (name != "max-age" or "=" in value or "=" not in each):
            raise OptionsError(
                "--strict-transport-security-directives invalid, allowed values: max-age=expireTime, "
                "includeSubDomains, preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more information"
            )

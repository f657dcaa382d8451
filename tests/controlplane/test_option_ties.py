"""Flags that depend on each other, in kube-apiserver's words, and anonymous requests."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from steersman.cli.flags import parse
from steersman.controlplane.control_plane import ControlPlane
from steersman.controlplane.option_ties import warnings_of
from steersman.controlplane.options import OptionsError
from steersman.server.certificates import CertificateFiles

REFUSED = (
    ("--authorization-mode=ABAC", "authorization-mode ABAC's authorization policy file not passed"),
    ("--authorization-mode=Webhook", "authorization-mode Webhook's authorization config file not passed"),
    ("--authorization-policy-file=FILE", "cannot specify --authorization-policy-file without mode ABAC"),
    (
        "--authorization-webhook-config-file=FILE",
        "cannot specify --authorization-webhook-config-file without mode Webhook",
    ),
    (
        "--authorization-config=FILE --authorization-mode=RBAC",
        "--authorization-config can not be specified when --authorization-mode or "
        "--authorization-webhook-* flags are defined",
    ),
    (
        "--oidc-client-id=a",
        "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set",
    ),
    (
        "--oidc-client-id=a --oidc-issuer-url=https://a --authentication-config=FILE",
        "authentication-config file and oidc-* flags are mutually exclusive",
    ),
    (
        "--requestheader-client-ca-file=CA --client-ca-file=CA",
        "--requestheader-client-ca-file and --client-ca-file contain overlapping certificates; "
        "--requestheader-allowed-names must be specified to ensure regular client certificates cannot "
        "set authenticating proxy headers for arbitrary users",
    ),
    (
        "--requestheader-uid-headers=X-Uid",
        "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - API "
        "aggregation will not work",
    ),
    (
        "--service-account-issuer=https://a --service-account-issuer=https://a",
        'service-account-issuer "https://a" is already specified',
    ),
    ("--service-account-jwks-uri=http://a", "service-account-jwks-uri requires https scheme, parsed as: http://a"),
    (
        "--service-account-signing-endpoint=@a --service-account-key-file=FILE",
        "can't set `--service-account-signing-key-file` and/or `--service-account-key-file` with "
        "`--service-account-signing-endpoint` (They are mutually exclusive)",
    ),
    (
        "--runtime-config=flowcontrol.apiserver.k8s.io/v1=false",
        "--runtime-config=flowcontrol.apiserver.k8s.io/v1=false conflicts with --enable-priority-and-fairness=true",
    ),
    (
        "--runtime-config=api/all=false,v1=true",
        "--runtime-config=api/all=false conflicts with --enable-priority-and-fairness=true",
    ),
    (
        "--max-requests-inflight=0 --max-mutating-requests-inflight=0",
        "invalid configuration: MaxRequestsInFlight=0 and MaxMutatingRequestsInFlight=0; they must add "
        "up to something positive",
    ),
    (
        "--enable-admission-plugins=NodeRestriction --disable-admission-plugins=NodeRestriction",
        "[NodeRestriction] in enable-admission-plugins and disable-admission-plugins overlapped",
    ),
    (
        "--encryption-provider-config-automatic-reload",
        "--encryption-provider-config-automatic-reload must be set with --encryption-provider-config",
    ),
    (
        "--strict-transport-security-directives=max-age",
        "--strict-transport-security-directives invalid, allowed values: max-age=expireTime, "
        "includeSubDomains, preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more "
        "information",
    ),
    (
        "--service-cluster-ip-range=10.0.0.0/24,10.0.1.0/24",
        "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family",
    ),
    (
        "--service-cluster-ip-range=10.0.0.0/24,fd00::/112,fd01::/112",
        "--service-cluster-ip-range must not contain more than two entries",
    ),
    (
        "--service-cluster-ip-range=fd00::/112 --advertise-address=10.1.1.1",
        'service IP family "fd00::/112" must match public address family "10.1.1.1"',
    ),
    (
        "--audit-log-path=- --audit-log-truncate-max-batch-size=10",
        "invalid audit truncate log max batch size 10, must be greater than max event size (102400)",
    ),
)
"""Flags that contradict each other, and kube-apiserver's words. FILE is any file, CA a certificate."""
WARNED = (
    (
        "--authorization-mode=AlwaysAllow",
        "AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false."
        " You should use a different authorizer",
    ),
    (
        "--authorization-mode=RBAC,AlwaysAllow --anonymous-auth=true",
        "AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false."
        " You should use a different authorizer",
    ),
    (
        "--requestheader-username-headers=X-User",
        "--requestheader-username-headers is set without specifying the standard X-Remote-User header - "
        "API aggregation will not work",
    ),
    (
        "--requestheader-group-headers=X-Group",
        "--requestheader-group-headers is set without specifying the standard X-Remote-Group header - "
        "API aggregation will not work",
    ),
    (
        "--requestheader-extra-headers-prefix=X-Extra-",
        "--requestheader-extra-headers-prefix is set without specifying the standard X-Remote-Extra- "
        "header prefix - API aggregation will not work",
    ),
    (
        "--service-account-max-token-expiration=1h",
        "service-account-extend-token-expiration is true, in order to correctly trigger safe transition "
        "logic, service-account-max-token-expiration must be set longer than 3607 seconds (currently "
        "1h0m0s)",
    ),
    (
        "--service-account-max-token-expiration=2h",
        "service-account-extend-token-expiration is true, enabling tokens valid up to 31536000 seconds, "
        "which is longer than service-account-max-token-expiration set to 2h0m0s",
    ),
)
"""Flags that change the meaning of others, and kube-apiserver's warnings."""


def flags_of(text: str, tmp_path: Path, ca: Path) -> list[str]:
    """Return the flags of a row, with real files in place of placeholders."""
    file = tmp_path / "file"
    file.write_text("")
    return [each.replace("=FILE", f"={file}").replace("=CA", f"={ca}") for each in shlex.split(text)]


@pytest.mark.parametrize(("flags", "words"), REFUSED)
async def test_flags_that_contradict_each_other_are_refused(
    tmp_path: Path, hook_files: CertificateFiles, flags: str, words: str
) -> None:
    given = flags_of(flags, tmp_path, hook_files.ca)
    with pytest.raises(OptionsError) as refused:
        await ControlPlane(parse(["--storage=memory", "--secure-port=0", *given], tmp_path / "data")).start()
    assert str(refused.value) == words


@pytest.mark.parametrize(("flags", "words"), WARNED)
def test_flags_of_which_one_changes_another_are_warned_of(tmp_path: Path, flags: str, words: str) -> None:
    assert words in [*warnings_of(parse(shlex.split(flags), tmp_path))]


def test_usual_flags_are_not_warned_of(tmp_path: Path) -> None:
    usual = [
        "--requestheader-username-headers=x-remote-user",
        "--service-account-max-token-expiration=8760h",
        "--authorization-mode=Node,RBAC",
        "--strict-transport-security-directives=max-age=1,includeSubDomains,preload",
        "--service-account-jwks-uri=HTTPS://a",
    ]
    assert [*warnings_of(parse(usual, tmp_path))] == []
    off = ["--authorization-mode=AlwaysAllow", "--anonymous-auth=false"]
    assert [*warnings_of(parse(off, tmp_path))] == []


@pytest.mark.parametrize("explicit", [True, False])
async def test_nobody_without_credentials_reads_secrets_where_everything_is_allowed(
    start_control_plane: Any, client_of: Any, explicit: bool
) -> None:
    plane = await start_control_plane(authorization_mode=("AlwaysAllow",), anonymous_auth_is_given=explicit)
    for path in ("/api/v1/secrets", "/livez", "/version"):
        assert (await client_of(plane, "").get(path)).status == 401
    assert (await client_of(plane).get("/api/v1/secrets")).status == 200

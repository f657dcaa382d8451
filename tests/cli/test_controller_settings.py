"""Conversion of the flags of `steersman controllers` to settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from steersman.authentication.service_account_keys import make_signing_key
from steersman.cli.controller_settings import SettingsError, settings_flags, settings_of
from steersman.cli.main import main
from steersman.controllers.certificates.requests import KUBELET_CLIENT, SIGNERS
from steersman.controllers.controller import Settings
from tests import ROOT


def settings(*flags: str) -> Settings:
    found: list[Settings] = []

    @click.command()
    @settings_flags
    def command(**given: Any) -> None:
        found.append(settings_of(given))

    command.main(list(flags), standalone_mode=False)
    return found[0]


def test_what_is_not_said() -> None:
    found = settings()
    assert (found.root_ca, found.sign_token, dict(found.signers), found.cluster_cidrs) == ("", None, {}, ())
    assert found.legacy_token_clean_up_period == 365 * 86400


def test_files(tmp_path: Path) -> None:
    ca, key = tmp_path / "ca.crt", tmp_path / "sa.key"
    ca.write_text("PEM")
    key.write_bytes(make_signing_key())
    key.chmod(0o600)
    found = settings(
        f"--root-ca-file={ca}",
        f"--service-account-private-key-file={key}",
        f"--cluster-signing-cert-file={ca}",
        f"--cluster-signing-key-file={key}",
        "--cluster-signing-duration=1h",
    )
    assert found.root_ca == "PEM"
    assert found.sign_token is not None
    assert found.sign_token({"iss": "x"}).count(".") == 2
    assert set(found.signers) == set(SIGNERS)
    assert found.signers[KUBELET_CLIENT].lasts == 3600
    own = settings(
        f"--cluster-signing-kubelet-client-cert-file={ca}", f"--cluster-signing-kubelet-client-key-file={key}"
    )
    assert set(own.signers) == {KUBELET_CLIENT}


def test_ranges_of_nodes() -> None:
    flags = ["--allocate-node-cidrs", "--cluster-cidr=10.0.0.0/16,fd00::/48", "--service-cluster-ip-range=10.0.0.0/24"]
    found = settings(*flags)
    assert [(str(each.network), each.node_size) for each in found.cluster_cidrs] == [
        ("10.0.0.0/16", 24),
        ("fd00::/48", 64),
    ]
    assert [str(each) for each in found.service_cidrs] == ["10.0.0.0/24"]
    assert settings(*flags, "--node-cidr-mask-size-ipv4=26").cluster_cidrs[0].node_size == 26
    assert settings("--cluster-cidr=10.0.0.0/16").cluster_cidrs == ()


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ("--cluster-signing-cert-file=a", "belong together"),
        (
            "--cluster-signing-cert-file=a --cluster-signing-key-file=b --cluster-signing-legacy-unknown-cert-file=a "
            "--cluster-signing-legacy-unknown-key-file=b",
            "cannot specify default and per controller certs at the same time",
        ),
        ("--cluster-signing-duration=long", "--cluster-signing-duration"),
        ("--cluster-signing-duration=0s", "must be more than 0"),
        ("--allocate-node-cidrs", "Must specify --cluster-cidr"),
        ("--allocate-node-cidrs --cluster-cidr=10.0.0.0", "Invalid --cluster-cidr|mask size"),
        ("--allocate-node-cidrs --cluster-cidr=x", "invalid CIDR address: x"),
        ("--allocate-node-cidrs --cluster-cidr=10.0.0.0/16,11.0.0.0/16", "one of each IP family"),
        ("--allocate-node-cidrs --cluster-cidr=10.0.0.0/16,fd00::/48 --node-cidr-mask-size=24", "dual-stack"),
        ("--allocate-node-cidrs --cluster-cidr=10.0.0.0/16 --node-cidr-mask-size-ipv6=64", "single-stack IPv4"),
        ("--allocate-node-cidrs --cluster-cidr=fd00::/48 --node-cidr-mask-size-ipv4=24", "single-stack IPv6"),
        ("--allocate-node-cidrs --cluster-cidr=10.0.0.0/16 --node-cidr-mask-size=33", "not a valid prefix length"),
        ("--allocate-node-cidrs --cluster-cidr=fd00::/32", "too big"),
    ],
)
def test_what_contradicts_itself(flags: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        settings(*flags.split(" "))


def test_every_flag_is_documented() -> None:
    text = (ROOT / "docs" / "controllers.md").read_text() + (ROOT / "docs" / "up.md").read_text()
    flags = [name for each in settings_flags(click.command()(lambda: None)).params for name in each.opts]
    assert [each for each in flags if f"`{each}`" not in text] == []


def test_controllers_that_there_are_not(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text("{}")
    ended = CliRunner().invoke(main, ["controllers", f"--kubeconfig={kubeconfig}", "--controllers=*,-none"])
    assert ended.exit_code == 1
    ended = CliRunner().invoke(main, ["serve", f"--data-dir={tmp_path}", "--controllers=job-controller"])
    assert ended.exit_code == 1
    assert '"job-controller" is not in the list of known controllers' in ended.output

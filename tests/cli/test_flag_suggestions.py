"""Invalid values and keys: errors name the valid ones, and suggest a similar one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steersman.cli.command import offered
from steersman.cli.flags import parse
from steersman.cluster.configuration import Configuration, ConfigurationError
from steersman.controlplane import tls_parameters
from steersman.controlplane.admission_configuration import AdmissionConfiguration
from steersman.controlplane.options import FLAGS, Options, OptionsError
from steersman.machinery.suggestions import did_you_mean, known_names_hint, not_allowed_message

FREE = {"runtime-config", "v"}
"""Flags with completions that also accept other values."""
LATER = {"tls-min-version", "tls-cipher-suites", "audit-log-version", "audit-webhook-version"}
"""Flags that are validated when the server starts."""
IN_OTHER_WORDS = {"storage-backend": "allowed values: etcd3", "authorization-webhook-version": '"v1", "v1beta1"'}
"""Upstream's messages that name the values."""


@pytest.mark.parametrize("name", [name for name, flag in FLAGS.items() if offered(flag) and name not in FREE | LATER])
def test_every_flag_of_few_values_names_them_and_the_one_that_was_meant(name: str, tmp_path: Path) -> None:
    meant = offered(FLAGS[name])[-1]
    with pytest.raises(OptionsError) as caught:
        parse([f"--{name}={meant[:-1]}"], tmp_path)
    told = str(caught.value)
    if name in IN_OTHER_WORDS:
        assert IN_OTHER_WORDS[name] in told
        return
    assert told.endswith(f", did you mean {meant}?")
    assert all(each in told for each in offered(FLAGS[name]) if each not in ("*", "Node,RBAC"))


@pytest.mark.parametrize(
    ("judge", "given", "meant"),
    [
        (tls_parameters.min_version, "VersionTLS1", "VersionTLS12"),
        (lambda name: tls_parameters.cipher_suites([name]), "TLS_AES_128_GCM_SHA", "TLS_AES_128_GCM_SHA256"),
    ],
)
def test_parameters_of_tls_too(judge: Any, given: str, meant: str) -> None:
    with pytest.raises(OptionsError, match=f"; known are .*{meant}.*, did you mean "):
        judge(given)


@pytest.mark.parametrize(
    ("argument", "meant"),
    [("--runtime-config=aps/v1=true", "apps"), ("--runtime-config=apps/v11=true", "apps/v1")],
)
def test_groups_and_versions_too(argument: str, meant: str, tmp_path: Path) -> None:
    with pytest.raises(OptionsError, match=rf"; known are .*, did you mean {meant}\?$"):
        parse([argument], tmp_path)


def test_options_of_a_program_are_judged_as_flags_are(tmp_path: Path) -> None:
    given: dict[str, Any]
    for name, value in (("storage", "mem"), ("logging_format", "jsn"), ("endpoint_reconciler_type", "leas")):
        given = {name: value}
        with pytest.raises(OptionsError, match=f"--{name.replace('_', '-')}: '{value}' is none of .*, did you mean "):
            Options(data_dir=tmp_path, **given)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nods: [{count: 1}]", "unknown key 'nods'; known are "),
        ("nodes: [{count: 1}, {lables: {}}]", "nodes[1]: unknown key 'lables'; known are annotations, architecture, "),
        ("nodes: [{count: x}]", "nodes[0].count: Expected `int`, got `str`"),
        ("nodes: 3", "nodes: Expected `array`, got `int`"),
        ("3: 4", "unknown key '3'; known are "),
    ],
)
def test_keys_of_the_file_of_a_cluster(text: str, told: str, tmp_path: Path) -> None:
    (path := tmp_path / "cluster.yaml").write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        Configuration.load(path)
    assert str(caught.value).startswith(f"{path}: {told}")


def test_keys_of_kubernetes_own_files(tmp_path: Path) -> None:
    (path := tmp_path / "admission.yaml").write_text(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins: [{name: a, paht: b}]\n"
    )
    with pytest.raises(OptionsError) as caught:
        AdmissionConfiguration.load(str(path))
    message = 'unknown field "plugins[0].paht" (known are configuration, name, path, did you mean path?)'
    assert str(caught.value).endswith(message)


def test_words() -> None:
    assert did_you_mean("RBACK", ["RBAC", "Node"]) == ", did you mean RBAC?"
    assert did_you_mean("rbac", ["RBAC", "Node"]) == ", did you mean RBAC?"
    assert did_you_mean("secure-prot", ["secure-port"], "--") == ", did you mean --secure-port?"
    assert did_you_mean("x" * 1_000_000, ["x" * 99]) == ""
    assert did_you_mean("zzz", ["RBAC"]) == ""
    assert known_names_hint("b", ["c", "a"]) == "; known are a, c"
    assert not_allowed_message(3, ["a"]) == "3 is none of a"

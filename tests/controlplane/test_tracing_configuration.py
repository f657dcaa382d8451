"""The file of `--tracing-config-file`: versions, and errors with kube-apiserver's words."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from steersman.api.apiserver.v1 import TracingConfiguration
from steersman.controlplane.options import OptionsError
from steersman.controlplane.tracing_configuration import tracing_configuration
from steersman.server.trace_export import TraceExport
from steersman.work.extras import MissingExtra

INVALID = "failed to validate tracing configuration: "
DECODING = "failed to read tracing config: unable to decode tracing configuration data: "


def read(folder: Path, members: str, version: str = "v1") -> TracingConfiguration:
    file = folder / "tracing.yaml"
    file.write_text(f"apiVersion: apiserver.config.k8s.io/{version}\nkind: TracingConfiguration\n{members}")
    return tracing_configuration(str(file))


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
def test_every_version_is_read(tmp_path: Path, version: str) -> None:
    found = read(tmp_path, "endpoint: localhost:4317\nsamplingRatePerMillion: 12378\n", version)
    assert (found.endpoint, found.sampling_rate_per_million) == ("localhost:4317", 12378)


@pytest.mark.parametrize("endpoint", ["localhost:4317", "dns://google.com:4317", "unix://path/to/socket"])
def test_endpoints_are_names_or_sockets(tmp_path: Path, endpoint: str) -> None:
    assert read(tmp_path, f"endpoint: {endpoint}\n").endpoint == endpoint


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            "samplingRatePerMillion: -1\n",
            INVALID + "samplingRatePerMillion: Invalid value: -1: sampling rate must be positive",
        ),
        (
            "samplingRatePerMillion: 1000001\n",
            INVALID + "samplingRatePerMillion: Invalid value: 1000001: sampling rate per million must be less than or "
            "equal to one million",
        ),
        (
            "endpoint: http://localhost:4317\n",
            INVALID + 'endpoint: Invalid value: "http://localhost:4317": unsupported scheme: http.  Options are none, '
            "dns, unix, or unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md",
        ),
        (
            "endpoint: dn%2s://localhost:4317\n",
            INVALID + 'endpoint: Invalid value: "dn%2s://localhost:4317": parse "dn%2s://localhost:4317": first path '
            "segment in URL cannot contain colon",
        ),
        (
            "unknown: 1\n",
            DECODING + 'strict decoding error: unknown field "unknown" (known are apiVersion, endpoint, kind, '
            "samplingRatePerMillion)",
        ),
        (
            "samplingRatePerMillion: many\n",
            DECODING + "json: cannot unmarshal string into Go struct field "
            "TracingConfiguration.TracingConfiguration.samplingRatePerMillion of type int32",
        ),
    ],
)
def test_invalid_files_are_refused(tmp_path: Path, members: str, message: str) -> None:
    with pytest.raises(OptionsError) as refused:
        read(tmp_path, members)
    assert str(refused.value) == message


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(OptionsError) as refused:
        tracing_configuration(str(tmp_path / "none"))
    assert str(refused.value) == (
        f'failed to read tracing config: unable to read tracing configuration from "{tmp_path}/none": open '
        f"{tmp_path}/none: no such file or directory"
    )


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(MissingExtra) as missing:
        TraceExport("", 0, "apiserver-x")
    assert "exported traces need the package opentelemetry-sdk" in str(missing.value)
    assert "steersman[tracing]" in str(missing.value)

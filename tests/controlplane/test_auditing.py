"""The `--audit-*` flags: refusals with upstream's messages, and the resulting backends."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from steersman.audit.backends.backend import IgnoringErrors, Union
from steersman.audit.backends.buffered import Buffered, QueuedLog
from steersman.audit.backends.log import LogBackend
from steersman.audit.backends.truncation import Truncating
from steersman.audit.metrics import AuditMetrics
from steersman.audit.trail import Auditor
from steersman.controlplane.auditing import audit_rules, auditor
from steersman.controlplane.options import Options, OptionsError
from steersman.machinery.metrics import Registry

POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"
KUBECONFIG = (
    "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: h, cluster: {server: 'https://127.0.0.1:1'}}]\n"
    "contexts: [{name: c, context: {cluster: h}}]\n"
)


def made(folder: Path, **given: Any) -> Auditor | None:
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "kubeconfig").write_text(KUBECONFIG)
    options = Options(data_dir=folder, **{"audit_policy_file": str(folder / "policy.yaml"), **given})
    with ThreadPoolExecutor(1) as executor:
        return auditor(options, audit_rules(options), AuditMetrics(Registry()), executor)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"audit_log_mode": "fast"}, 'invalid audit log mode fast, allowed modes are "batch,blocking,blocking-strict"'),
        ({"audit_log_format": "xml"}, 'invalid audit log format xml, allowed formats are "legacy,json"'),
        ({"audit_log_maxage": -1}, "--audit-log-maxage -1 can't be a negative number"),
        (
            {"audit_log_mode": "batch", "audit_log_batch_buffer_size": 0},
            "invalid audit batch log buffer size 0, must be a positive number",
        ),
        (
            {"audit_log_mode": "batch", "audit_log_batch_max_size": 0},
            "invalid audit batch log max batch size 0, must be a positive number",
        ),
        (
            {"audit_log_mode": "batch", "audit_log_batch_throttle_enable": True},
            "invalid audit batch log throttle QPS 0, must be a positive number",
        ),
        (
            {"audit_log_truncate_max_event_size": 0},
            "invalid audit truncate log max event size 0, must be a positive number",
        ),
        (
            {"audit_log_truncate_max_batch_size": 10},
            "invalid audit truncate log max batch size 10, must be greater than max event size (102400)",
        ),
        (
            {"audit_log_version": "audit.k8s.io/v1beta1"},
            'invalid group version, allowed versions are ["audit.k8s.io/v1"]',
        ),
        (
            {"audit_log_maxsize": -1, "audit_log_maxbackup": -2},
            "[--audit-log-maxbackup -2 can't be a negative number, --audit-log-maxsize -1 can't be a negative number]",
        ),
    ],
)
def test_values_that_cannot_be_are_told(tmp_path: Path, given: dict[str, Any], why: str) -> None:
    with pytest.raises(OptionsError) as error:
        made(tmp_path, audit_log_path=str(tmp_path / "a.log"), **given)
    assert str(error.value) == why


def test_flags_of_what_is_off_are_not_looked_at(tmp_path: Path) -> None:
    assert made(tmp_path, audit_log_mode="fast", audit_webhook_mode="slow") is None


def test_without_a_policy_nothing_is_recorded_but_the_file_is_there(tmp_path: Path) -> None:
    assert made(tmp_path, audit_policy_file="", audit_log_path=str(tmp_path / "x" / "a.log")) is None
    assert (tmp_path / "x" / "a.log").stat().st_mode & 0o777 == 0o600


def test_a_policy_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(OptionsError, match="loading audit policy file: failed to read file path"):
        made(tmp_path, audit_policy_file=str(tmp_path / "none"))


def test_a_log_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionsError, match="ensureLogFile: "):
        made(tmp_path, audit_log_path=str(tmp_path / "file" / "a.log"))


def test_a_webhook_that_cannot_be_configured_is_told(tmp_path: Path) -> None:
    with pytest.raises(OptionsError, match="initializing audit webhook: "):
        made(tmp_path, audit_webhook_config_file=str(tmp_path / "none"))


async def test_modes_say_how_events_are_waited_for(tmp_path: Path) -> None:
    log = {"audit_log_path": str(tmp_path / "a.log")}
    webhook = {"audit_webhook_config_file": str(tmp_path / "kubeconfig")}
    for given, kind in (
        (log, IgnoringErrors),
        (log | {"audit_log_mode": "blocking-strict"}, LogBackend),
        (log | {"audit_log_mode": "batch"}, QueuedLog),
        (log | {"audit_log_mode": "batch", "audit_log_batch_max_size": 5}, Buffered),
        (log | {"audit_log_truncate_enabled": True}, Truncating),
        (webhook, Buffered),
        (webhook | {"audit_webhook_mode": "blocking"}, IgnoringErrors),
        (log | webhook, Union),
    ):
        found = made(tmp_path, **given)
        assert found is not None
        assert type(found.backend) is kind
        await found.close()

"""The authorizer chain in a file. Error texts are those of kube-apiserver 1.36 for the same files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from steersman.authorization.configuration import ConfigurationError, read_configuration
from steersman.authorization.interface import Decision
from steersman.authorization.steps import Step, Webhook


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    file = tmp_path / "kubeconfig"
    file.write_text("{}")
    return str(file)


def document(*authorizers: dict[str, Any], version: str = "v1") -> bytes:
    head = {"apiVersion": f"apiserver.config.k8s.io/{version}", "kind": "AuthorizationConfiguration"}
    return yaml.safe_dump({**head, "authorizers": list(authorizers)}).encode()


def a_webhook(kubeconfig: str, **changes: Any) -> dict[str, Any]:
    webhook = {
        "timeout": "3s",
        "subjectAccessReviewVersion": "v1",
        "failurePolicy": "Deny",
        "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": kubeconfig},
        **changes,
    }
    given = {key: value for key, value in webhook.items() if value is not None}
    return {"type": "Webhook", "name": "w", "webhook": given}


def conditions(*expressions: str) -> dict[str, Any]:
    return {
        "matchConditions": [{"expression": each} for each in expressions],
        "matchConditionSubjectAccessReviewVersion": "v1",
    }


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
def test_a_chain_is_read_in_its_order(kubeconfig: str, version: str) -> None:
    rbac, node = {"type": "RBAC", "name": "rbac"}, {"type": "Node", "name": "node"}
    steps = read_configuration(document(node, a_webhook(kubeconfig), rbac, version=version))
    webhook = Webhook(kubeconfig=kubeconfig, timeout=3.0, on_error=Decision.DENY)
    assert steps == (Step("Node", "node"), Step("Webhook", "w", webhook), Step("RBAC", "rbac"))


def test_what_a_webhook_is_told(kubeconfig: str) -> None:
    given = a_webhook(
        kubeconfig,
        authorizedTTL="1m",
        unauthorizedTTL="2s",
        cacheUnauthorizedRequests=False,
        failurePolicy="NoOpinion",
        subjectAccessReviewVersion="v1beta1",
        **conditions("true", "false"),
    )
    (step,) = read_configuration(document(given))
    assert step.webhook == Webhook(
        kubeconfig=kubeconfig,
        version="v1beta1",
        authorized_ttl=60.0,
        unauthorized_ttl=0.0,
        timeout=3.0,
        conditions=("true", "false"),
    )


NO_TYPE = 'supported values: "ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"'


@pytest.mark.parametrize(
    ("authorizers", "why"),
    [
        ([], "authorizers: Required value: at least one authorization mode must be defined"),
        ([{"name": "x"}], "authorizers[0].type: Required value"),
        ([{"type": "Foo", "name": "x"}], f'authorizers[0].type: Unsupported value: "Foo": {NO_TYPE}'),
        ([{"type": "RBAC", "name": "rbac"}] * 2, 'authorizers[1].type: Duplicate value: "RBAC"'),
        ([{"type": "RBAC"}], "authorizers[0].name: Required value"),
        ([{"type": "RBAC", "name": "mine"}], "expected name rbac for authorizer RBAC instead of mine"),
        ([{"type": "Webhook", "name": "w"}], "authorizers[0].webhook: Required value: required when type=Webhook"),
    ],
)
def test_chains_that_cannot_be(authorizers: Any, why: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        read_configuration(document(*authorizers))
    assert str(error.value) == why


CONNECTION = "authorizers[0].connectionInfo"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"timeout": None}, "authorizers[0].timeout: Required value"),
        ({"timeout": "31s"}, 'authorizers[0].timeout: Invalid value: "31s": must be > 0s and <= 30s'),
        ({"timeout": "x"}, 'failed to load AuthorizationConfiguration from file: time: invalid duration "x"'),
        ({"authorizedTTL": "-1s"}, 'authorizers[0].authorizedTTL: Invalid value: "-1s": must be > 0s'),
        (
            {"subjectAccessReviewVersion": "v2"},
            'authorizers[0].subjectAccessReviewVersion: Unsupported value: "v2": supported values: "v1", "v1beta1"',
        ),
        (
            {"failurePolicy": "Fail"},
            'authorizers[0].failurePolicy: Unsupported value: "Fail": supported values: "NoOpinion", "Deny"',
        ),
        ({"connectionInfo": {}}, f"{CONNECTION}.type: Required value"),
        (
            {"connectionInfo": {"type": "Foo"}},
            f'{CONNECTION}.type: Unsupported value: {{"Type":"Foo","KubeConfigFile":null}}: supported values: '
            '"InClusterConfig", "KubeConfigFile"',
        ),
        (
            {"connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": "x"}},
            f'{CONNECTION}.kubeConfigFile: Invalid value: "x": must be an absolute path',
        ),
        (
            {"connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": "/nosuch/x"}},
            f'{CONNECTION}.kubeConfigFile: Invalid value: "/nosuch/x": error loading file: stat /nosuch/x: no such '
            "file or directory",
        ),
        (
            {"connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": "/tmp"}},
            f'{CONNECTION}.kubeConfigFile: Invalid value: "/tmp": must be a regular file',
        ),
        (
            {"matchConditions": [{"expression": "true"}]},
            "authorizers[0].matchConditionSubjectAccessReviewVersion: Required value: required if match conditions are "
            "specified",
        ),
        (
            conditions("request.user"),
            'authorizers[0].matchConditions[0].expression: Invalid value: "request.user": must evaluate to bool but '
            "got string",
        ),
        (
            conditions("true", "true"),
            'authorizers[0].matchConditions[1].expression: Duplicate value: "true"',
        ),
        (
            conditions(*(f"{number} == 1" for number in range(65))),
            "authorizers[0].matchConditions: Too many: 65: must have at most 64 items",
        ),
    ],
)
def test_webhooks_that_cannot_be(kubeconfig: str, changes: Any, why: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        read_configuration(document(a_webhook(kubeconfig, **changes)))
    assert str(error.value) == why


def test_types_that_are_needed_must_stay() -> None:
    with pytest.raises(ConfigurationError) as error:
        read_configuration(document({"type": "RBAC", "name": "rbac"}), ("Node", "RBAC", "Webhook", "ABAC"))
    assert str(error.value) == "missing required types: [ABAC Node]"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "authorizers: Required value: at least one authorization mode must be defined"),
        (b"authorizers: []", "failed to load AuthorizationConfiguration from file: Object 'Kind' is missing in "),
        (document({"type": "RBAC", "name": "rbac", "foo": 1}), 'unknown field "authorizers[0].foo"'),
    ],
)
def test_documents_that_cannot_be_read(data: Any, why: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        read_configuration(data)
    assert why in str(error.value)


def test_a_duration_that_is_null_is_refused_in_gos_words() -> None:
    text = """{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration",
               "authorizers": [{"type": "Webhook", "name": "w", "webhook": {"timeout": null}}]}"""
    with pytest.raises(ConfigurationError, match='time: invalid duration ""'):
        read_configuration(text.encode())

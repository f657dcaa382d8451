"""Configuration files with any wrong value: the start fails with a clear error."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from steersman.audit.policy_file import PolicyError, load_policy
from steersman.authentication.jwt.configuration import read_configuration as read_authentication
from steersman.authorization.abac_file import PolicyFileError, read_policies
from steersman.authorization.configuration import ConfigurationError as AuthorizationError
from steersman.authorization.configuration import read_configuration as read_authorization
from steersman.controlplane import optional_plugins
from steersman.controlplane.admission_configuration import AdmissionConfiguration
from steersman.controlplane.egress_selector import egress_of
from steersman.controlplane.options import OptionsError
from steersman.machinery.codec.strict import DecodeError
from steersman.machinery.metrics import Registry
from steersman.storage.encryption.configuration import ConfigurationError as EncryptionError
from steersman.storage.encryption.configuration import parse_configuration
from steersman.webhooks.kubeconfig import KubeconfigError, load_kubeconfig, load_logins

Read = Callable[[Path], Any]

JWT = {
    "issuer": {"url": "https://i", "discoveryURL": "https://d", "audiences": ["a"], "egressSelectorType": "cluster"},
    "claimValidationRules": [{"claim": "c", "requiredValue": "v"}],
    "claimMappings": {
        "username": {"claim": "sub", "prefix": ""},
        "uid": {"claim": "uid"},
        "extra": [{"key": "a/b", "valueExpression": "claims.x"}],
    },
    "userValidationRules": [{"expression": "user.username != 'x'"}],
}
WEBHOOK = {
    "authorizedTTL": "1m",
    "cacheAuthorizedRequests": True,
    "timeout": "3s",
    "subjectAccessReviewVersion": "v1",
    "failurePolicy": "Deny",
    "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": "/none"},
    "matchConditions": [{"expression": "true"}],
}
KEYS = {"keys": [{"name": "k", "secret": "c2VjcmV0IGlzIHNlY3VyZQ=="}]}
KMS = {"apiVersion": "v2", "name": "n", "endpoint": "unix:///s", "timeout": "3s"}
TLS = {"caBundle": "/none", "clientKey": "/none", "clientCert": "/none"}
SCOPE = {"scopeName": "PriorityClass", "operator": "In", "values": ["v"]}
USER = {"token": "t", "username": "n", "client-certificate-data": "YQ==", "as-groups": ["g"]}
RULES = [{"level": "Metadata", "verbs": ["get"], "resources": [{"group": "", "resources": ["pods"]}]}]


def of(api_version: str, kind: str, **members: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, **members}


def of_plugin(name: str, method: str, path: Path) -> Any:
    configuration = AdmissionConfiguration({name: path})
    if hasattr(configuration, method):
        return getattr(configuration, method)()
    return getattr(optional_plugins, method)(configuration)


def of_bytes(read: Callable[[bytes], Any], path: Path) -> Any:
    return read(path.read_bytes())


FILES: dict[str, tuple[Read, type[Exception], dict[str, Any]]] = {
    "authentication": (
        partial(of_bytes, read_authentication),
        DecodeError,
        of("apiserver.config.k8s.io/v1", "AuthenticationConfiguration", jwt=[JWT], anonymous={"enabled": True}),
    ),
    "authorization": (
        partial(of_bytes, read_authorization),
        AuthorizationError,
        of(
            "apiserver.config.k8s.io/v1beta1",
            "AuthorizationConfiguration",
            authorizers=[{"type": "Webhook", "name": "w", "webhook": WEBHOOK}],
        ),
    ),
    "encryption": (
        lambda path: parse_configuration(path.read_bytes(), path, reloads=True),
        EncryptionError,
        of(
            "apiserver.config.k8s.io/v1",
            "EncryptionConfiguration",
            resources=[{"resources": ["secrets"], "providers": [{"aescbc": KEYS}, {"identity": {}}, {"kms": KMS}]}],
        ),
    ),
    "egress": (
        lambda path: egress_of(str(path), Registry()),
        OptionsError,
        of(
            "apiserver.k8s.io/v1beta1",
            "EgressSelectorConfiguration",
            egressSelections=[
                {
                    "name": "cluster",
                    "connection": {
                        "proxyProtocol": "HTTPConnect",
                        "transport": {"tcp": {"url": "https://p", "tlsConfig": TLS}},
                    },
                },
                {"name": "etcd", "connection": {"proxyProtocol": "GRPC", "transport": {"uds": {"udsName": "/s"}}}},
            ],
        ),
    ),
    "audit": (load_policy, PolicyError, of("audit.k8s.io/v1", "Policy", omitStages=["Panic"], rules=RULES)),
    "ABAC": (
        read_policies,
        PolicyFileError,
        of("abac.authorization.kubernetes.io/v1beta1", "Policy", spec={"user": "u", "readonly": True}),
    ),
    "admission": (
        lambda path: AdmissionConfiguration.load(str(path)),
        OptionsError,
        of(
            "apiserver.config.k8s.io/v1",
            "AdmissionConfiguration",
            plugins=[{"name": "A", "path": "f"}, {"name": "B", "configuration": {"a": [1]}}],
        ),
    ),
    "PodSecurity": (
        partial(of_plugin, "PodSecurity", "pod_security"),
        OptionsError,
        of(
            "pod-security.admission.config.k8s.io/v1",
            "PodSecurityConfiguration",
            defaults={"enforce": "baseline", "enforce-version": "v1.30"},
            exemptions={"usernames": ["u"], "namespaces": ["n"], "runtimeClasses": ["r"]},
        ),
    ),
    "ResourceQuota": (
        partial(of_plugin, "ResourceQuota", "resource_quota"),
        OptionsError,
        of(
            "apiserver.config.k8s.io/v1",
            "ResourceQuotaConfiguration",
            limitedResources=[{"resource": "pods", "matchContains": ["a"], "matchScopes": [SCOPE]}],
        ),
    ),
    "EventRateLimit": (
        partial(of_plugin, "EventRateLimit", "event_rate_limits"),
        OptionsError,
        of(
            "eventratelimit.admission.k8s.io/v1alpha1",
            "Configuration",
            limits=[{"type": "User", "qps": 5, "burst": 6, "cacheSize": 7}],
        ),
    ),
    "PodTolerationRestriction": (
        partial(of_plugin, "PodTolerationRestriction", "pod_tolerations"),
        OptionsError,
        of(
            "podtolerationrestriction.admission.k8s.io/v1alpha1",
            "Configuration",
            default=[{"key": "k", "operator": "Exists", "tolerationSeconds": 5}],
            whitelist=[{"key": "k"}],
        ),
    ),
    "ImagePolicyWebhook": (
        partial(of_plugin, "ImagePolicyWebhook", "image_policy"),
        OptionsError,
        {"imagePolicy": {"kubeConfigFile": "/none", "allowTTL": 50, "defaultAllow": True}},
    ),
    "kubeconfig": (
        load_kubeconfig,
        KubeconfigError,
        of(
            "v1",
            "Config",
            clusters=[{"name": "c", "cluster": {"server": "http://h", "tls-server-name": "n"}}],
            users=[{"name": "u", "user": USER}],
            contexts=[{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            **{"current-context": "x"},
        ),
    ),
    "logins": (load_logins, KubeconfigError, of("v1", "Config", users=[{"name": "u", "user": {"username": "n"}}])),
}

FILES_WITHOUT_KIND: dict[str, tuple[Read, type[Exception]]] = {
    "PodNodeSelector": (partial(of_plugin, "PodNodeSelector", "pod_node_selector"), OptionsError),
    **{name: (read, error) for name, (read, error, _) in FILES.items() if name != "ABAC"},
}
"""Readers of files, also of those that read a file without a kind."""

OTHERS: list[Any] = [5, "x", None, [], {}, [[]]]


def replaced(value: Any) -> Iterator[Any]:
    """Yield copies of the value with each of its parts replaced by other values, one at a time."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        for other in OTHERS:
            changed = copy.copy(value)
            changed[key] = other
            yield changed
        for part in replaced(value[key]):
            changed = copy.copy(value)
            changed[key] = part
            yield changed


@pytest.mark.parametrize("name", FILES)
def test_whatever_stands_in_a_file_it_is_read_or_told(name: str, tmp_path: Path) -> None:
    read, error, document = FILES[name]
    path = tmp_path / "file"
    told = 0
    for each in replaced(document):
        path.write_text(json.dumps(each))
        try:
            read(path)
        except error:
            told += 1
    assert told > 5


@pytest.mark.parametrize("name", FILES_WITHOUT_KIND)
@pytest.mark.parametrize("item", ["- 1", "- - 1", "- {}"])
def test_a_file_with_too_many_values_is_refused_with_an_error_of_its_reader(
    name: str, item: str, tmp_path: Path
) -> None:
    read, error = FILES_WITHOUT_KIND[name]
    path = tmp_path / "file"
    path.write_text("more:\n" + f"{item}\n" * 70_000)
    with pytest.raises(error, match=r"limit is (65536 values|32768 objects and lists)"):
        read(path)

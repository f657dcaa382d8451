"""--admission-control-config-file: parsing, and errors at the start."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from steersman.admission_plugins import image_policy_webhook, pod_toleration_restriction
from steersman.admission_plugins.declaration import ConfiguredDeclaration
from steersman.admission_plugins.event_rate_limit import Limit
from steersman.admission_plugins.pod_security import pod_security
from steersman.admission_plugins.pod_security.levels import LevelVersion, Policy, minor_of
from steersman.admission_plugins.quota.resource_quota import LimitedResource
from steersman.api.core.v1 import ScopedResourceSelectorRequirement, Toleration
from steersman.controlplane import optional_plugins
from steersman.controlplane.admission import PLUGINS, Optional
from steersman.controlplane.admission_configuration import AdmissionConfiguration
from steersman.controlplane.options import OptionsError

HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n"
SECURITY = {"apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration"}
QUOTA = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "ResourceQuotaConfiguration"}
TOLERATIONS = {"apiVersion": "podtolerationrestriction.admission.k8s.io/v1alpha1", "kind": "Configuration"}
RATES = {"apiVersion": "eventratelimit.admission.k8s.io/v1alpha1", "kind": "Configuration"}
KINDLESS = "apiVersion: apiserver.config.k8s.io/v1"
NO_STRUCT = "couldn't get version/kind; json parse error: "
WRONG = "json: cannot unmarshal {} into Go struct field {} of type {}"
SCHEME = 'in scheme "pkg/runtime/scheme.go:111"'
LATEST = minor_of("latest")

Read = Callable[[AdmissionConfiguration], Any]


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], AdmissionConfiguration]:
    """Yield `load(text)`, which parses a file with that text."""

    def read(text: str) -> AdmissionConfiguration:
        path = tmp_path / "admission.yaml"
        path.write_text(text)
        return AdmissionConfiguration.load(str(path))

    return read


def configured(**plugins: Any) -> AdmissionConfiguration:
    """Return the configuration of plugins with these documents."""
    documents = {name: given if isinstance(given, str) else json.dumps(given) for name, given in plugins.items()}
    return AdmissionConfiguration({name: text.encode() for name, text in documents.items()})


def why(read: Callable[[], Any]) -> str:
    """Return the error of the start."""
    with pytest.raises(OptionsError) as caught:
        read()
    return str(caught.value)


# The file


def test_without_a_file_nothing_is_configured() -> None:
    nothing = AdmissionConfiguration.load("")
    assert nothing.pod_security() is pod_security.UNCONFIGURED
    assert optional_plugins.pod_tolerations(nothing) is pod_toleration_restriction.UNCONFIGURED
    assert (nothing.resource_quota(), optional_plugins.pod_node_selector(nothing)) == ((), {})


def test_a_document_is_in_the_file_or_beside_it(load: Any, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.yaml").write_text("a")
    absolute = tmp_path / "b.yaml"
    absolute.write_text("b")
    plugins = [
        {"name": "A", "path": "sub/a.yaml"},
        {"name": "B", "path": str(absolute)},
        {"name": "C", "path": "nowhere", "configuration": {"c": [1, "<"]}},
        {"name": "C", "configuration": {"c": 2}},
        {"name": "D"},
        {"name": "E", "configuration": None},
    ]
    for text in (
        HEAD + f"plugins: {json.dumps(plugins)}\n",
        json.dumps({"apiVersion": "apiserver.k8s.io/v1alpha1", "kind": "AdmissionConfiguration", "plugins": plugins}),
    ):
        found = load(text)
        assert [found.document(name) for name in "ABDE"] == [b"a", b"b", None, None]
        assert json.loads(found.document("C") or b"") == {"c": [1, "<"]}


def test_a_document_that_is_not_there_ends_the_start(load: Any, tmp_path: Path) -> None:
    found = load(HEAD + "plugins: [{name: PodSecurity, path: nope}]\n")
    assert why(found.pod_security) == (
        f"Couldn't open admission plugin configuration {tmp_path}/nope: No such file or directory"
    )
    read = "failed to apply admission: failed to read plugin config: "
    assert why(lambda: AdmissionConfiguration.load(f"{tmp_path}/nope")) == (
        f'{read}unable to read admission control configuration from "{tmp_path}/nope" [No such file or directory]'
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "Object 'Kind' is missing in ''"),
        (KINDLESS, f"Object 'Kind' is missing in '{KINDLESS}'"),
        ("kind: AdmissionConfiguration", "Object 'apiVersion' is missing in 'kind: AdmissionConfiguration'"),
        ("a: [", "yaml: line 1: did not find expected node content"),
        ("apiVersion: a/b/c\nkind: Pod", "unexpected GroupVersion string: a/b/c"),
        ("apiVersion: v1\nkind: Pod", f'no kind "Pod" is registered for version "v1" {SCHEME}'),
        (
            HEAD + "plugin: []",
            'strict decoding error: unknown field "plugin" '
            "(known are apiVersion, kind, plugins, did you mean plugins?)",
        ),
        (
            HEAD + "plugins: []\nplugins: []",
            'strict decoding error: yaml: unmarshal errors:\n  line 4: key "plugins" already set in map',
        ),
        (
            HEAD + "plugins: 3",
            WRONG.format("number", "AdmissionConfiguration.plugins", "[]v1.AdmissionPluginConfiguration"),
        ),
        (HEAD + "plugins: [{name: 3}]", WRONG.format("number", "AdmissionPluginConfiguration.plugins.name", "string")),
        ('{"apiVersion":"a"} b', f"{NO_STRUCT}invalid character 'b' after top-level value"),
    ],
)
def test_a_file_that_cannot_be_read_ends_the_start_in_upstreams_words(load: Any, text: str, told: str) -> None:
    assert why(lambda: load(text)) == f"failed to apply admission: failed to read plugin config: {told}"


def test_a_file_may_be_the_configuration_of_pod_node_selector_itself(load: Any) -> None:
    found = load("podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: a=b}\n")
    assert optional_plugins.pod_node_selector(found) == {"clusterDefaultNodeSelector": "a=b"}


# Plugins


def test_pod_security_has_defaults_and_exemptions() -> None:
    assert configured(PodSecurity=SECURITY).pod_security() == pod_security.UNCONFIGURED
    assert configured(PodSecurity="").pod_security() == pod_security.UNCONFIGURED
    defaults = {"enforce": "baseline", "enforce-version": "v1.30", "warn": "restricted", "audit": ""}
    exemptions = {"usernames": ["a b"], "namespaces": ["n"], "runtimeClasses": ["r.x"]}
    for version in ("v1", "v1beta1", "v1alpha1"):
        head = SECURITY | {"apiVersion": f"pod-security.admission.config.k8s.io/{version}"}
        found = configured(PodSecurity=head | {"defaults": defaults, "exemptions": exemptions}).pod_security()
        policy = Policy(
            LevelVersion("baseline", 30), LevelVersion("privileged", LATEST), LevelVersion("restricted", LATEST)
        )
        assert found == pod_security.Configuration(policy, frozenset({"a b"}), frozenset({"n"}), frozenset({"r.x"}))


def test_resource_quota_has_limited_resources() -> None:
    scope = {"scopeName": "PriorityClass", "operator": "In", "values": ["gold"]}
    limited = [
        {"resource": "pods", "matchScopes": [scope]},
        {"apiGroup": "apps", "resource": "deployments", "matchContains": ["a", "b"]},
    ]
    old = {"apiVersion": "resourcequota.admission.k8s.io/v1beta1", "kind": "Configuration"}
    for head in (QUOTA, old, old | {"apiVersion": "resourcequota.admission.k8s.io/v1alpha1"}):
        assert configured(ResourceQuota=head | {"limitedResources": limited}).resource_quota() == (
            LimitedResource(
                resource="pods",
                match_scopes=[
                    ScopedResourceSelectorRequirement(scope_name="PriorityClass", operator="In", values=["gold"])
                ],
            ),
            LimitedResource(api_group="apps", resource="deployments", match_contains=["a", "b"]),
        )


def test_pod_toleration_restriction_has_two_lists() -> None:
    given = TOLERATIONS | {"default": [{"key": "a", "operator": "Exists"}], "unknown": 1}
    found = optional_plugins.pod_tolerations(configured(PodTolerationRestriction=given))
    assert found.default == [Toleration(key="a", operator="Exists")]
    assert found.whitelist == []


def test_event_rate_limit_has_limits() -> None:
    limits = [{"type": "Server", "qps": 1, "burst": 2}, {"type": "User", "qps": 3, "burst": 4, "cacheSize": 5}]
    found = optional_plugins.event_rate_limits(configured(EventRateLimit=RATES | {"limits": limits}))
    assert found == (Limit(type="Server", qps=1, burst=2), Limit(type="User", qps=3, burst=4, cache_size=5))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("podNodeSelectorPluginConfig: {a: b=c, m: 3, t: yes, x: null}", {"a": "b=c", "m": "3", "t": "true", "x": ""}),
        ('{"PODNodeSelectorPluginConfig": {"a": "b=c", "n": 3}}', {"a": "b=c", "n": ""}),
        ("podNodeSelectorPluginConfig: {a: b}\n---\npodNodeSelectorPluginConfig: {c: d}\n", {"a": "b", "c": "d"}),
        ("podNodeSelectorPluginConfig: [1]", {}),
        ("a: [\n---\npodNodeSelectorPluginConfig: {c: d}\n", {"c": "d"}),
        ('"text"', {}),
    ],
)
def test_of_pod_node_selectors_configuration_what_can_be_read_counts(text: str, found: dict[str, str]) -> None:
    assert optional_plugins.pod_node_selector(configured(PodNodeSelector=text)) == found


def test_image_policy_has_a_kubeconfig_and_times(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(
        "clusters: [{name: h, cluster: {server: 'http://h.example/p'}}]\n"
        "contexts: [{name: c, context: {cluster: h}}]\n"
        "current-context: c\n"
    )

    def read(**more: Any) -> Any:
        return optional_plugins.image_policy(
            configured(ImagePolicyWebhook={"imagePolicy": {"kubeConfigFile": str(path), **more}})
        )

    assert read().settings == image_policy_webhook.Settings(300.0, 30.0, False)
    found = read(allowTTL=50, denyTTL=-1, retryBackoff=20, defaultAllow=True)
    assert found.settings == image_policy_webhook.Settings(50.0, 0.0, True)
    assert (found.backoff, found.endpoint.url, found.endpoint.target) == (0.02, "http://h.example/p", "/p")
    init = 'failed to apply admission: couldn\'t init admission plugin "ImagePolicyWebhook": '
    assert why(lambda: read(allowTTL=5000)) == f"{init}valid value is between 1s and 30m0s, got 1h23m20s"
    assert why(lambda: read(retryBackoff=400_000)) == f"{init}valid value is between 1ns and 5m0s, got 6m40s"
    assert why(lambda: read(denyTTL=-2)) == f"{init}valid value is between 1s and 30m0s, got -2s"
    assert why(lambda: read(denyTTL="a")) == init + WRONG.format(
        "string", "imagePolicyWebhookConfig.imagePolicy.denyTTL", "time.Duration"
    )
    assert why(partial(optional_plugins.image_policy, AdmissionConfiguration())) == f"{init}no config specified"
    assert why(partial(optional_plugins.image_policy, configured(ImagePolicyWebhook="{}"))).startswith(
        f"{init}invalid configuration: no conf"
    )
    assert why(partial(optional_plugins.image_policy, configured(ImagePolicyWebhook="abc"))) == (
        f"{init}error unmarshaling JSON: while decoding JSON: json: cannot unmarshal string into Go value of type "
        "imagepolicy.AdmissionConfig"
    )


INIT = "failed to apply admission: couldn't init admission plugin "
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


@pytest.mark.parametrize(
    ("plugin", "document", "told"),
    [
        (
            "PodSecurity",
            "abc",
            f"{NO_STRUCT}json: cannot unmarshal string into Go value of type "
            'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }',
        ),
        ("PodSecurity", '{"defaults":{}}', "Object 'Kind' is missing in '{\"defaults\":{}}'"),
        (
            "PodSecurity",
            SECURITY | {"kind": "Foo"},
            f'no kind "Foo" is registered for version "pod-security.admission.config.k8s.io/v1" {SCHEME}',
        ),
        (
            "PodSecurity",
            SECURITY | {"defaults": {"bar": 1}, "foo": 2},
            'strict decoding error: unknown field "defaults.bar" (known are audit, audit-version, '
            'enforce, enforce-version, warn, warn-version), unknown field "foo" '
            "(known are apiVersion, defaults, exemptions, kind)",
        ),
        (
            "PodSecurity",
            SECURITY | {"defaults": {"enforce": 2}},
            WRONG.format("number", "PodSecurityDefaults.defaults.enforce", "string"),
        ),
        (
            "PodSecurity",
            SECURITY | {"exemptions": {"usernames": "a"}},
            WRONG.format("string", "PodSecurityExemptions.exemptions.usernames", "[]string"),
        ),
        (
            "ResourceQuota",
            QUOTA | {"kind": "Configuration"},
            f'no kind "Configuration" is registered for version "apiserver.config.k8s.io/v1" {SCHEME}',
        ),
        (
            "ResourceQuota",
            QUOTA | {"limitedResources": [{"apiGroup": "a"}, {"resource": ""}]},
            "[limitedResources[0].resource: Required value, limitedResources[1].resource: Required value]",
        ),
        (
            "ResourceQuota",
            QUOTA | {"limitedResources": [{"resource": "pods", "foo": 1}]},
            'strict decoding error: unknown field "limitedResources[0].foo" (known are apiGroup, matchContains, '
            "matchScopes, resource)",
        ),
        (
            "ResourceQuota",
            QUOTA | {"limitedResources": [{"matchScopes": [{"scopeName": 3}]}]},
            WRONG.format(
                "number",
                "ScopedResourceSelectorRequirement.limitedResources.matchScopes.scopeName",
                "v1.ResourceQuotaScope",
            ),
        ),
        (
            "PodTolerationRestriction",
            TOLERATIONS | {"default": [{"key": 3}]},
            WRONG.format("number", "Toleration.default.key", "string"),
        ),
        (
            "PodTolerationRestriction",
            TOLERATIONS | {"default": [{"operator": "Equal"}], "whitelist": [{"key": "a", "effect": "Foo"}]},
            'invalid config: [podtolerationrestriction.default[0].operator: Invalid value: "Equal": operator must be '
            'Exists when `key` is empty, which means "match all values and all keys" '
            'podtolerationrestriction.whitelist[0].effect: Unsupported value: "Foo": supported values: "NoSchedule", '
            '"PreferNoSchedule", "NoExecute"]',
        ),
        ("EventRateLimit", RATES, "limits: Invalid value: null: must not be empty"),
        (
            "EventRateLimit",
            RATES | {"limits": [{"type": "Server", "qps": 3_000_000_000}]},
            WRONG.format("number 3000000000", "Limit.limits.qps", "int32"),
        ),
        (
            "EventRateLimit",
            RATES
            | {
                "limits": [
                    {"type": "Server", "qps": -1, "cacheSize": -4},
                    {"type": "User", "qps": 1, "burst": 1, "cacheSize": -4},
                ]
            },
            "[limits[0].burst: Invalid value: 0: must be positive, limits[0].qps: Invalid value: -1: must be positive, "
            "limits[1].cacheSize: Invalid value: -4: must not be negative]",
        ),
    ],
)
def test_what_a_plugin_cannot_use_ends_the_start_in_upstreams_words(plugin: str, document: Any, told: str) -> None:
    found = configured(**{plugin: document})
    readers: dict[str, Callable[[], Any]] = {
        "PodSecurity": found.pod_security,
        "ResourceQuota": found.resource_quota,
        "PodTolerationRestriction": partial(optional_plugins.pod_tolerations, found),
        "EventRateLimit": partial(optional_plugins.event_rate_limits, found),
    }
    assert why(readers[plugin]) == f'{INIT}"{plugin}": {told}'


def test_levels_versions_and_exemptions_are_checked() -> None:
    failed = 'failed to apply admission: failed to initialize admission plugin "PodSecurity": PodSecurity '
    defaults = {"enforce": "Foo", "audit": "x", "warn-version": "v2", "enforce-version": "v1.01"}
    levels = "must be one of privileged, baseline, restricted"
    versions = 'must be "latest" or "v1.x"'
    assert why(configured(PodSecurity=SECURITY | {"defaults": defaults}).pod_security) == (
        f"{failed}configuration error: [enforce: {levels}, enforce-version: {versions}, audit: {levels}, "
        f"warn-version: {versions}]"
    )
    one = configured(PodSecurity=SECURITY | {"defaults": {"warn": "x"}})
    assert why(one.pod_security) == f"{failed}configuration error: warn: {levels}"
    exemptions = {"usernames": ["", "a", "a"], "namespaces": ["A", "b", "b", "a.b"], "runtimeClasses": ["c", "c"]}
    assert why(configured(PodSecurity=SECURITY | {"exemptions": exemptions}).pod_security) == (
        f'{failed}invalid: [exemptions.namespaces[0]: Invalid value: "A": {LABEL}, '
        'exemptions.namespaces[2]: Duplicate value: "b", '
        'exemptions.namespaces[3]: Invalid value: "a.b": must not contain dots, '
        'exemptions.runtimeClasses[1]: Duplicate value: "c", '
        'exemptions.usernames[0]: Invalid value: "": username must not be empty, '
        'exemptions.usernames[2]: Duplicate value: "a"]'
    )


# A server


def a_file(tmp_path: Path, *plugins: dict[str, Any]) -> str:
    path = tmp_path / "admission.yaml"
    path.write_text(HEAD + f"plugins: {json.dumps(plugins)}\n")
    return str(path)


def a_pod(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


async def test_plugins_do_what_the_file_says(start_control_plane: Any, client_of: Any, tmp_path: Path) -> None:
    limited = [{"resource": "services", "matchContains": ["loadbalancers"]}]
    path = a_file(
        tmp_path,
        {"name": "PodSecurity", "configuration": SECURITY | {"defaults": {"enforce": "baseline"}}},
        {"name": "ResourceQuota", "configuration": QUOTA | {"limitedResources": limited}},
        {
            "name": "PodNodeSelector",
            "configuration": {"podNodeSelectorPluginConfig": {"clusterDefaultNodeSelector": "a=b"}},
        },
        {
            "name": "PodTolerationRestriction",
            "configuration": TOLERATIONS | {"default": [{"key": "k", "operator": "Exists"}]},
        },
        {"name": "EventRateLimit", "configuration": RATES | {"limits": [{"type": "Namespace", "qps": 1, "burst": 1}]}},
        {"name": "NoSuchPlugin", "path": "nowhere"},
        {"name": "AlwaysDeny", "path": "nowhere"},
    )
    plane = await start_control_plane(
        admission_control_config_file=path,
        enable_admission_plugins=("PodNodeSelector", "PodTolerationRestriction", "EventRateLimit"),
        disable_admission_plugins=("ServiceAccount",),
    )
    api = client_of(plane)
    base = "/api/v1/namespaces/default/"
    made = await api.post(f"{base}pods", a_pod("a"))
    assert made.status == 201
    spec = made.json()["spec"]
    assert spec["nodeSelector"] == {"a": "b"}
    assert {"key": "k", "operator": "Exists"} in spec["tolerations"]
    refused = await api.post(f"{base}pods", a_pod("b", hostNetwork=True))
    assert refused.json()["message"] == (
        'pods "b" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)'
    )
    service = {"metadata": {"name": "s"}, "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}}
    refused = await api.post(f"{base}services", service)
    assert refused.json()["message"] == (
        'services "s" is forbidden: insufficient quota to consume: services.loadbalancers'
    )
    event = {"involvedObject": {"namespace": "default"}, "reason": "r", "type": "Normal"}
    assert (await api.post(f"{base}events", {"metadata": {"name": "a"}} | event)).status == 201
    refused = await api.post(f"{base}events", {"metadata": {"name": "b"}} | event)
    assert refused.status == 429
    assert refused.json() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "reason": "TooManyRequests",
        "code": 429,
        "message": "Too many requests: limit reached on type Namespace for key default",
    }


OF_HOOKS = f'{INIT}"ValidatingAdmissionWebhook": '


def webhook_admission(**configuration: str) -> dict[str, Any]:
    """Return the configuration of ValidatingAdmissionWebhook."""
    head = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration"}
    return {"name": "ValidatingAdmissionWebhook", "configuration": head | configuration}


GATE = "Forbidden: staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate to be enabled"


def of_policies(**configuration: str) -> dict[str, Any]:
    """Return the configuration of MutatingAdmissionPolicy."""
    head = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "MutatingAdmissionPolicyConfiguration"}
    return {"name": "MutatingAdmissionPolicy", "configuration": head | configuration}


@pytest.mark.parametrize(
    ("plugin", "told"),
    [
        ({"name": "LimitRanger", "path": "nope"}, "Couldn't open admission plugin configuration "),
        (
            {"name": "ValidatingAdmissionPolicy", "configuration": {}},
            f"{INIT}\"ValidatingAdmissionPolicy\": Object 'Kind' is missing in '{{}}'",
        ),
        (of_policies(staticManifestsDir="/etc"), f'{INIT}"MutatingAdmissionPolicy": staticManifestsDir: {GATE}'),
        (
            of_policies(kind="ValidatingAdmissionPolicyConfiguration"),
            f'{INIT}"MutatingAdmissionPolicy": unexpected type: *policyconfig.ValidatingAdmissionPolicyConfiguration',
        ),
        (of_policies(foo="x"), f'{INIT}"MutatingAdmissionPolicy": strict decoding error: unknown field "foo"'),
        (
            of_policies(apiVersion="v1", kind="Pod"),
            f'{INIT}"MutatingAdmissionPolicy": no kind "Pod" is registered for version "v1" {SCHEME}',
        ),
        (webhook_admission(kubeConfigFile="hooks.yaml"), f'{OF_HOOKS}kubeConfigFile: Invalid value: "hooks.yaml": '),
        (webhook_admission(kubeConfigFile="/no/such.yaml"), f"{OF_HOOKS}stat /no/such.yaml: no such file"),
        (webhook_admission(staticManifestsDir="/etc"), f"{OF_HOOKS}staticManifestsDir: {GATE}"),
        (webhook_admission(staticManifestsDir="/etc", kubeConfigFile="x"), f"{OF_HOOKS}kubeConfigFile: Invalid value"),
        ({"name": "ResourceQuota", "configuration": {}}, f"{INIT}\"ResourceQuota\": Object 'Kind' is missing"),
    ],
)
async def test_a_start_ends_with_what_a_plugin_that_is_on_cannot_use(
    start_control_plane: Any, tmp_path: Path, plugin: dict[str, Any], told: str
) -> None:
    with pytest.raises(OptionsError) as caught:
        await start_control_plane(admission_control_config_file=a_file(tmp_path, plugin))
    assert str(caught.value).startswith(told)


@pytest.mark.parametrize("configuration", [{}, {"staticManifestsDir": ""}])
async def test_policies_are_configured_with_nothing(
    start_control_plane: Any, tmp_path: Path, configuration: dict[str, str]
) -> None:
    path = a_file(tmp_path, of_policies(**configuration))
    plane = await start_control_plane(admission_control_config_file=path)
    assert plane.server is not None


async def test_event_rate_limit_needs_a_configuration(start_control_plane: Any) -> None:
    with pytest.raises(OptionsError) as caught:
        await start_control_plane(enable_admission_plugins=("EventRateLimit",))
    assert str(caught.value) == f'{INIT}"EventRateLimit": limits: Invalid value: null: must not be empty'


OPTIONAL = [each for each in PLUGINS if isinstance(each, Optional)]


@pytest.mark.parametrize("optional", OPTIONAL, ids=[each.name for each in OPTIONAL])
def test_an_optional_plugin_is_declared_in_its_module_as_in_the_list(optional: Optional) -> None:
    declared = getattr(import_module(f"steersman.admission_plugins.{optional.module}"), optional.declaration)
    assert (declared.name, declared.on_by_default) == (optional.name, False)
    assert isinstance(declared, ConfiguredDeclaration) == bool(optional.reader)
    assert not optional.reader or callable(getattr(optional_plugins, optional.reader))


def test_plugins_that_are_on_by_default_are_not_optional() -> None:
    assert [each.name for each in PLUGINS if not each.on_by_default] == [each.name for each in OPTIONAL]

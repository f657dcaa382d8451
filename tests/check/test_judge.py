"""Verdicts on documents, as the server gives them."""

from __future__ import annotations

from pathlib import Path

from steersman.authentication.user import UserInfo
from steersman.check.finding import Rule
from steersman.check.judge import Settings
from tests.check.manifests import DEFINITION, DEPLOYMENT, WIDGET, report, told

NAMESPACE = """
apiVersion: v1
kind: Namespace
metadata:
  name: shop
  labels: {pod-security.kubernetes.io/enforce: baseline}
"""


async def test_documents_without_faults_have_no_findings_in_whatever_order_they_come(tmp_path: Path) -> None:
    found = await report(tmp_path, WIDGET, DEPLOYMENT, NAMESPACE, DEFINITION)
    assert told(found) == []
    assert [str(each.object) for each in found.objects] == [
        "Widget default/small",
        "Deployment shop/web",
        "Namespace shop",
        "CustomResourceDefinition widgets.example.com",
    ]


async def test_findings_have_the_words_of_the_server_and_the_lines_of_fields(tmp_path: Path) -> None:
    wrong = DEPLOYMENT.replace("image: nginx", "imag: nginx").replace("replicas: 3", "replicas: -3")
    strange = WIDGET.replace("size: 3", "size: 11").replace("red", "5")
    service = "\napiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec:\n  ports:\n  - port: many\n"
    ingress = "\napiVersion: extensions/v1beta1\nkind: Ingress\nmetadata: {name: a}\n"
    found = await report(tmp_path, wrong, DEFINITION, strange, service, ingress)
    text = (tmp_path / "all.yaml").read_text().split("\n")
    assert [(each.rule.value, each.field, text[each.line - 1].strip()) for each in found.findings] == [
        ("Invalid", "spec.replicas", "replicas: -3"),
        ("UnknownField", "spec.template.spec.containers[0].imag", "imag: nginx"),
        ("Invalid", "", "apiVersion: example.com/v1"),
        ("Invalid", "spec.size", "size: 11"),
        ("Invalid", "spec.colour", "colour: 5"),
        ("Malformed", "spec.ports[0].port", "- port: many"),
        ("UnknownKind", "", "apiVersion: extensions/v1beta1"),
    ]
    assert [each.message for each in found.findings] == [
        "Invalid value: -3: must be greater than or equal to 0",
        'unknown field "spec.template.spec.containers[0].imag"',
        "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing "
        "errors to complete validation",
        "Invalid value: 11: spec.size in body should be less than or equal to 10",
        'Invalid value: "integer": spec.colour in body must be of type string: "integer"',
        'Service in version "v1" cannot be handled as a Service: json: cannot unmarshal string into Go struct field '
        "ServicePort.spec.ports.port of type int32",
        'no matches for kind "Ingress" in version "extensions/v1beta1": it is served in networking.k8s.io/v1',
    ]


async def test_rules_of_custom_resources_and_policies_judge(tmp_path: Path) -> None:
    policy = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: few}
spec:
  paramKind: {apiVersion: example.com/v1, kind: Widget}
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]
  validations: [{expression: object.spec.replicas <= params.spec.size, message: too many replicas}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: few}
spec:
  policyName: few
  paramRef: {name: small, namespace: default, parameterNotFoundAction: Deny}
  validationActions: [Deny]
"""
    negative = WIDGET.replace("small", "negative").replace("size: 3", "size: -1")
    many = DEPLOYMENT.replace("replicas: 3", "replicas: 4")
    found = await report(tmp_path, many, policy, negative, WIDGET, DEFINITION)
    assert told(found) == [
        (
            "error",
            "Forbidden",
            "Deployment shop/web",
            "deployments.apps \"web\" is forbidden: ValidatingAdmissionPolicy 'few' with binding 'few' denied request: "
            "too many replicas",
        ),
        ("error", "Invalid", "Widget default/negative", "Invalid value: size must be positive"),
    ]


async def test_pods_of_workloads_are_judged_against_pod_security_and_quotas(tmp_path: Path) -> None:
    privileged = DEPLOYMENT.replace("image: nginx", "image: nginx\n        securityContext: {privileged: true}")
    quota = """
apiVersion: v1
kind: ResourceQuota
metadata: {name: small, namespace: tight}
spec: {hard: {requests.cpu: 500m}}
"""
    found = await report(tmp_path, NAMESPACE, privileged, DEPLOYMENT.replace("shop", "tight"), quota)
    refused = [each for each in found.findings if each.rule is Rule.POD_REFUSED]
    assert [(str(each.object), each.field) for each in refused] == [
        ("Deployment shop/web", "spec.template"),
        ("Deployment tight/web", "spec.template"),
    ]
    assert refused[0].message.startswith(
        'pods "web-0" is forbidden: violates PodSecurity "baseline:latest": privileged'
    )
    assert refused[1].message == (
        'pods "web-2" is forbidden: exceeded quota: small, requested: requests.cpu=200m, used: requests.cpu=400m, '
        "limited: requests.cpu=500m"
    )


async def test_warnings_duplicates_and_ignored_rules(tmp_path: Path) -> None:
    endpoints = "\napiVersion: v1\nkind: Endpoints\nmetadata: {name: a}\n"
    texts = (endpoints, DEPLOYMENT, DEPLOYMENT)
    found = await report(tmp_path, *texts)
    assert told(found) == [
        (
            "warning",
            "Warning",
            "Endpoints default/a",
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        ),
        ("warning", "Duplicate", "Deployment shop/web", f"the object is also in {tmp_path}/all.yaml:6"),
    ]
    found = await report(tmp_path, *texts, settings=Settings(ignored=frozenset({Rule.WARNING, Rule.DUPLICATE})))
    assert told(found) == []


ROLES = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: deployer, namespace: shop}
rules: [{apiGroups: [apps], resources: [deployments], verbs: [create, patch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: deployer, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: deployer}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: jane}]
"""


async def test_a_user_may_do_what_the_roles_among_the_documents_allow(tmp_path: Path) -> None:
    settings = Settings(user=UserInfo("jane"), ignored=frozenset({Rule.DANGLING_REFERENCE}))
    found = await report(tmp_path, ROLES, DEPLOYMENT, DEPLOYMENT.replace("shop", "other"), settings=settings)
    assert [(str(each.object), each.rule.value) for each in found.findings] == [
        ("Role shop/deployer", "Forbidden"),
        ("RoleBinding shop/deployer", "Forbidden"),
        ("Deployment other/web", "Forbidden"),
    ]
    assert found.findings[2].message == (
        'deployments.apps is forbidden: User "jane" cannot create resource "deployments" in API group "apps" in the '
        'namespace "other"'
    )


async def test_an_unknown_field_is_the_only_finding_about_an_object_of_a_user(tmp_path: Path) -> None:
    settings = Settings(user=UserInfo("jane"), ignored=frozenset({Rule.DANGLING_REFERENCE, Rule.FORBIDDEN}))
    found = await report(tmp_path, ROLES, DEPLOYMENT.replace("replicas", "replica"), settings=settings)
    assert [(each.rule.value, each.message) for each in found.findings] == [
        ("UnknownField", 'unknown field "spec.replica"'),
    ]


async def test_faults_of_a_schema_have_the_lines_of_the_only_version(tmp_path: Path) -> None:
    definition = DEFINITION.replace("self.size > 0", "self.height > 0")
    found = await report(tmp_path, definition)
    assert [each.line for each in found.findings] == [definition.split("- rule:")[0].count("\n") + 1]
    assert "undefined field 'height'" in found.findings[0].message


async def test_old_objects_are_changed_and_forgiven_what_does_not_change(tmp_path: Path) -> None:
    old = f"{DEFINITION.replace(', maximum: 10', '')}---{WIDGET.replace('size: 3', 'size: 50')}---{DEPLOYMENT}"
    kept = WIDGET.replace("size: 3", "size: 50").replace("red", "blue")
    moved = DEPLOYMENT.replace("app: web", "app: web2")
    found = await report(tmp_path, DEFINITION, kept, moved, old=old)
    assert [(each.rule.value, str(each.object), each.message) for each in found.findings] == [
        ("NarrowedSchema", "CustomResourceDefinition widgets.example.com", "spec.size: maximum is 10, was not set"),
        (
            "Invalid",
            "Deployment shop/web",
            'Invalid value: {"matchLabels":{"app":"web2"}}: field is immutable',
        ),
        (
            "StoredObject",
            "Widget default/small",
            "Invalid value: 50: spec.size in body should be less than or equal to 10",
        ),
    ]


async def test_a_definition_that_converts_by_a_webhook_is_judged_without_it(tmp_path: Path) -> None:
    hook = """
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {name: hook, namespace: shop}}
"""
    second = (
        DEFINITION[DEFINITION.index("  - name: v1") :]
        .replace("name: v1", "name: v2")
        .replace("storage: true", "storage: false")
    )
    found = await report(
        tmp_path, DEFINITION + second + hook, WIDGET.replace("/v1", "/v2").replace("size: 3", "size: 12")
    )
    assert [(each.rule.value, each.message) for each in found.findings] == [
        ("DanglingReference", 'Service "hook" in namespace shop is not among the documents'),
        ("Invalid", "Invalid value: 12: spec.size in body should be less than or equal to 10"),
    ]


async def test_definitions_whose_names_are_taken_are_told(tmp_path: Path) -> None:
    other = DEFINITION.replace("widgets", "gadgets")
    found = await report(tmp_path, DEFINITION, other)
    assert [each.message for each in found.findings] == ['NamesAccepted=False: "WidgetList" is already in use']

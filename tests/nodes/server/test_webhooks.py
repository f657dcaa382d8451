"""Helm charts with webhooks on simulated nodes: containers create the certificates, and pods serve the webhooks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from cryptography import x509

from steersman.api.admissionregistration.v1 import (
    RuleWithOperations,
    ServiceReference,
    ValidatingWebhook,
    ValidatingWebhookConfiguration,
    WebhookClientConfig,
)
from steersman.api.apiregistration.v1 import APIService, APIServiceSpec
from steersman.api.apiregistration.v1 import ServiceReference as APIServiceReference
from steersman.api.core.v1 import (
    ConfigMap,
    EnvVar,
    EnvVarSource,
    Namespace,
    ObjectFieldSelector,
    Pod,
    Secret,
    Service,
    ServicePort,
    ServiceSpec,
)
from steersman.api.meta.v1 import ObjectMeta
from steersman.api.rbac.v1 import ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject
from steersman.client.resources import (
    API_SERVICES,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    EVENTS,
    NAMESPACES,
    PODS,
    SECRETS,
    SERVICES,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)
from steersman.machinery.errors.status import StatusError
from steersman.nodes.certificates import certificates_of
from steersman.nodes.server.reviews import answer_of_reviewer
from tests.controllers.waiting import eventually
from tests.nodes.server.requests import Node

CERTGEN = "registry.k8s.io/ingress-nginx/kube-webhook-certgen:v1.5.2"
PATCH = [
    "patch",
    "--webhook-name=w",
    "--namespace=default",
    "--secret-name=certs",
    "--patch-mutating=false",
    "--patch-failure-policy=Fail",
]
CREATE = [
    "create",
    "--host=w,w.default.svc",
    "--namespace=default",
    "--secret-name=certs",
    "--cert-name=tls.crt",
    "--key-name=tls.key",
]


async def grant_rights(node: Node) -> None:
    """Grant the rights that charts give their Jobs."""
    rules = [
        PolicyRule(api_groups=[""], resources=["secrets"], verbs=["get", "create"]),
        PolicyRule(
            api_groups=["admissionregistration.k8s.io"],
            resources=["validatingwebhookconfigurations"],
            verbs=["get", "update"],
        ),
        PolicyRule(api_groups=["apiregistration.k8s.io"], resources=["apiservices"], verbs=["get", "update"]),
    ]
    await node.client.create(CLUSTER_ROLES, ClusterRole(metadata=ObjectMeta(name="accounts"), rules=rules))
    subject = Subject(kind="ServiceAccount", name="default", namespace="default")
    await node.client.create(
        CLUSTER_ROLE_BINDINGS,
        ClusterRoleBinding(
            metadata=ObjectMeta(name="accounts"),
            subjects=[subject],
            role_ref=RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name="accounts"),
        ),
    )


async def run_to_end(
    node: Node, name: str, image: str, args: list[str], *, command: Sequence[str] = (), env: Sequence[EnvVar] = ()
) -> Pod:
    """Create a pod that runs once, wait until it has ended, and return it."""
    await node.pod(name, *command, image=image, args=args, env=list(env), restart_policy="Never")

    async def is_over() -> Pod | None:
        pod = await node.client.get(PODS, name, "default")
        return pod if pod.status.phase in ("Succeeded", "Failed") else None

    found = await eventually(is_over)
    assert found is not None
    return found


async def configure(node: Node, authority: bytes) -> None:
    rule = RuleWithOperations(operations=["CREATE"], api_groups=[""], api_versions=["v1"], resources=["configmaps"])
    config = WebhookClientConfig(service=ServiceReference(namespace="default", name="w"), ca_bundle=authority)
    await node.client.create(
        VALIDATING_WEBHOOK_CONFIGURATIONS,
        ValidatingWebhookConfiguration(
            metadata=ObjectMeta(name="w"),
            webhooks=[
                ValidatingWebhook(
                    name="w.example.com",
                    client_config=config,
                    rules=[rule],
                    side_effects="None",
                    admission_review_versions=["v1"],
                    timeout_seconds=5,
                )
            ],
        ),
    )


async def test_a_chart_s_job_leaves_its_secret_and_patches_its_webhooks(node: Node) -> None:
    await grant_rights(node)
    await configure(node, b"")
    found = await run_to_end(node, "create", CERTGEN, CREATE)
    assert found.status.phase == "Succeeded"
    secret = await node.client.get(SECRETS, "certs", "default")
    assert sorted(secret.data) == ["ca", "tls.crt", "tls.key"]
    authority, certificate = (x509.load_pem_x509_certificate(secret.data[each]) for each in ("ca", "tls.crt"))
    certificate.verify_directly_issued_by(authority)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["w", "w.default.svc"]
    assert (await run_to_end(node, "patch", CERTGEN, PATCH)).status.phase == "Succeeded"
    webhooks = (await node.client.get(VALIDATING_WEBHOOK_CONFIGURATIONS, "w")).webhooks
    assert [(each.client_config.ca_bundle, each.failure_policy) for each in webhooks] == [(secret.data["ca"], "Fail")]


async def test_its_command_names_variables_and_values_apart(node: Node) -> None:
    await grant_rights(node)
    variables = [
        EnvVar(name="NS", value_from=EnvVarSource(field_ref=ObjectFieldSelector(field_path="metadata.namespace")))
    ]
    command = ["create", "--host", "w,w.$(NS).svc", "--namespace=$(NS)", "--secret-name", "certs"]
    found = await run_to_end(node, "create", CERTGEN, command, env=variables)
    assert found.status.phase == "Succeeded"
    secret = await node.client.get(SECRETS, "certs", "default")
    certificate = x509.load_pem_x509_certificate(secret.data["cert"])
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["w", "w.default.svc"]


async def test_it_patches_an_api_service(node: Node) -> None:
    await grant_rights(node)
    spec = APIServiceSpec(
        group="things.example.com",
        version="v1",
        group_priority_minimum=1000,
        version_priority=15,
        service=APIServiceReference(namespace="default", name="w"),
        insecure_skip_tls_verify=True,
    )
    await node.client.create(API_SERVICES, APIService(metadata=ObjectMeta(name="v1.things.example.com"), spec=spec))
    secret = Secret(metadata=ObjectMeta(name="certs", namespace="default"), data={"ca": certificates_of(["w"])[0]})
    await node.client.create(SECRETS, secret)
    command = ["patch", "--namespace=default", "--secret-name=certs", "--patch-mutating=false"]
    command += ["--patch-validating=false", "--apiservice-name=v1.things.example.com"]
    assert (await run_to_end(node, "patch", CERTGEN, command)).status.phase == "Succeeded"
    found = (await node.client.get(API_SERVICES, "v1.things.example.com")).spec
    assert (found.ca_bundle, found.insecure_skip_tls_verify) == (secret.data["ca"], False)


async def test_it_says_why_it_patches_nothing(node: Node) -> None:
    command = ["patch", "--namespace=default", "--secret-name=c", "--patch-mutating=false", "--patch-validating=false"]
    state = (await run_to_end(node, "patch", CERTGEN, command)).status.container_statuses[0].state.terminated
    assert state is not None
    assert state.message.endswith("You must patch at least one kind of webhook, otherwise this command is a no-op")


async def test_the_jobs_of_envoy_gateway_and_argo_cd_leave_their_secrets(node: Node) -> None:
    await grant_rights(node)
    for name, command in {
        "envoy": ["envoy-gateway", "certgen", "--disable-topology-injector"],
        "argo": ["argocd", "admin", "redis-initial-password"],
    }.items():
        found = await run_to_end(node, name, "registry/tool:1", [], command=command)
        assert found.status.phase == "Succeeded"
    made = {each.metadata.name: each for each in (await node.client.list(SECRETS, "default")).items}
    assert {name: sorted(each.data) for name, each in made.items()} == {
        **{each: ["ca.crt", "tls.crt", "tls.key"] for each in ("envoy", "envoy-gateway", "envoy-rate-limit")},
        "envoy-oidc-hmac": ["hmac-secret"],
        "argocd-redis": ["auth"],
    }
    authority, certificate = (
        x509.load_pem_x509_certificate(made["envoy-gateway"].data[each]) for each in ("ca.crt", "tls.crt")
    )
    certificate.verify_directly_issued_by(authority)


async def test_it_does_so_with_the_rights_of_its_account(node: Node) -> None:
    found = await run_to_end(node, "create", CERTGEN, CREATE)
    assert found.status.phase == "Failed"
    state = found.status.container_statuses[0].state.terminated
    assert state is not None
    assert "is forbidden" in state.message
    assert 'User "system:serviceaccount:default:default"' in state.message


async def serve(node: Node, annotations: dict[str, str]) -> None:
    await node.pod("web", ports=(8443,), annotations=annotations, labels={"app": "w"})
    ports = [ServicePort(port=443, target_port=8443)]
    await node.client.create(
        SERVICES,
        Service(
            metadata=ObjectMeta(name="w", namespace="default"), spec=ServiceSpec(selector={"app": "w"}, ports=ports)
        ),
    )


async def make(node: Node, name: str) -> None:
    await node.client.create(CONFIG_MAPS, ConfigMap(metadata=ObjectMeta(name=name, namespace="default")))


async def test_a_pod_that_is_asked_as_a_webhook_refuses_and_says_why_once(node: Node) -> None:
    await serve(node, {})
    await configure(node, certificates_of(["w.default.svc"])[0])

    async def reported() -> list[str]:
        with pytest.raises(StatusError, match="failed calling webhook"):
            await make(node, "a")
        events = (await node.client.list(EVENTS, "default")).items
        return [each.message for each in events if each.reason == "NotSimulated" and "webhooks" in each.message]

    [message] = await eventually(reported) or [""]
    assert "answerWebhooks" in message
    assert len(await reported()) == 1


async def test_a_service_without_a_ready_pod_refuses_connections(node: Node) -> None:
    spec = ServiceSpec(selector={"app": "w"}, ports=[ServicePort(port=443)])
    service = Service(metadata=ObjectMeta(name="w", namespace="default"), spec=spec)
    address = (await node.client.create(SERVICES, service)).spec.cluster_ip
    await configure(node, certificates_of(["w.default.svc"])[0])
    with pytest.raises(StatusError, match=f"dial tcp {address}:443: connect: connection refused"):
        await make(node, "a")


async def test_a_switch_has_it_allow(node: Node) -> None:
    await serve(node, {"simulation.steersman.dev/webhooks": "allow"})
    await configure(node, certificates_of(["w.default.svc"])[0])

    async def is_made() -> bool:
        try:
            await make(node, "a")
        except StatusError:
            return False
        return True

    assert await eventually(is_made)


async def test_apis_of_pods_have_no_resources_then(node: Node) -> None:
    await serve(node, {"simulation.steersman.dev/webhooks": "allow"})
    spec = APIServiceSpec(
        group="things.example.com",
        version="v1",
        group_priority_minimum=1000,
        version_priority=15,
        service=APIServiceReference(namespace="default", name="w"),
        insecure_skip_tls_verify=True,
    )
    await node.client.create(API_SERVICES, APIService(metadata=ObjectMeta(name="v1.things.example.com"), spec=spec))

    async def is_available() -> bool:
        api_service = await node.client.get(API_SERVICES, "v1.things.example.com")
        return any(each.type == "Available" and each.status == "True" for each in api_service.status.conditions)

    assert await eventually(is_available)
    assert b'"resources":[]' in await node.client.request("GET", "/apis/things.example.com/v1")
    await node.client.create(NAMESPACES, Namespace(metadata=ObjectMeta(name="gone")))
    await node.client.delete(NAMESPACES, "gone")

    async def is_gone() -> bool:
        try:
            await node.client.get(NAMESPACES, "gone")
        except StatusError:
            return True
        return False

    assert await eventually(is_gone)


def test_a_review_is_read_as_far_as_its_answer_needs_it() -> None:
    def answer(body: bytes) -> Any:
        response = answer_of_reviewer("/convert", body)
        if response is None:
            return None
        assert isinstance(response.body, bytes)
        return msgspec.json.decode(response.body)

    many = b"{}," * 400_000 + b"{}"
    started_at = time.thread_time()
    found = answer(b'{"kind":"AdmissionReview","request":{"uid":"u","object":{"a":[%b]}}}' % many)
    assert found["response"] == {"uid": "u", "allowed": True}
    review = b'{"kind":"ConversionReview","request":{"uid":"u","desiredAPIVersion":"a/v2","objects":%b}}'
    assert answer(review % (b"[%b]" % many)) is None
    assert answer(review % b'{"a":1}') is None
    assert answer(b"[%b]" % many) is None
    assert time.thread_time() - started_at < 0.2  # values of the objects alone would take 1 s
    found = answer(review % b'[{"apiVersion":"a/v1","kind":"A"},{"b":[1]}]')["response"]["convertedObjects"]
    assert [each["apiVersion"] for each in found] == ["a/v2", "a/v2"]
    assert answer(review % b"null")["response"]["convertedObjects"] == []

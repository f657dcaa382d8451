"""Tests of the Pod Security Standards' checks: a passing and a failing pod for each, and its versions."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.admission_plugins.pod_security.checks import CHECKS, Violation, details, reasons, violations
from steersman.admission_plugins.pod_security.levels import BASELINE, LATEST, PRIVILEGED, RESTRICTED, LevelVersion
from tests.admission_plugins.pods_and_namespaces import CONTAINER, make_pod

FINE: dict[str, Any] = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [
        CONTAINER | {"securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}
    ],
}


def violation_texts(
    level: str, spec: dict[str, Any], minor: int = LATEST, annotations: dict[str, str] | None = None
) -> str:
    pod = make_pod(spec, annotations=annotations or {})
    return details(violations(LevelVersion(level, minor), pod.metadata, pod.spec))


def spec_with_context(**context: Any) -> dict[str, Any]:
    """Return a spec with a container and an init container that have this security context."""
    inner = {"securityContext": context}
    return {"initContainers": [CONTAINER | {"name": "i"} | inner], "containers": [CONTAINER | inner]}


def with_sysctl(name: str) -> dict[str, Any]:
    return {"securityContext": {"sysctls": [{"name": name, "value": "1"}]}}


UNCONFINED = {"type": "Unconfined"}
AS_ROOT = FINE | {"securityContext": FINE["securityContext"] | {"runAsUser": 0}}
BASELINE_VIOLATIONS = [
    ({"hostNetwork": True, "hostIPC": True}, "host namespaces (hostNetwork=true, hostIPC=true)"),
    ({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, 'hostPath volumes (volume "v")'),
    (
        {"containers": [CONTAINER | {"ports": [{"containerPort": port, "hostPort": port} for port in (9, 10)]}]},
        'hostPort (container "c" uses hostPorts 10, 9)',
    ),
    (
        {"containers": [CONTAINER | {"livenessProbe": {"httpGet": {"port": 1, "host": "h"}}}]},
        'probe or lifecycle host (container "c" uses probe or lifecycle host "h")',
    ),
    (
        spec_with_context(privileged=True),
        'privileged (containers "i", "c" must not set securityContext.privileged=true)',
    ),
    (
        spec_with_context(procMount="Unmasked"),
        'procMount (containers "i", "c" must not set securityContext.procMount to "Unmasked")',
    ),
    (
        spec_with_context(capabilities={"add": ["SYS_ADMIN", "CHOWN", "NET_RAW"]}),
        'non-default capabilities (containers "i", "c" must not include "NET_RAW", "SYS_ADMIN" in '
        "securityContext.capabilities.add)",
    ),
    (
        {"securityContext": {"seLinuxOptions": {"type": "spc_t", "user": "u", "role": "r"}}},
        'seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type "spc_t"; user may not be set; role may '
        "not be set)",
    ),
    (
        {"securityContext": {"seccompProfile": UNCONFINED}} | spec_with_context(seccompProfile=UNCONFINED),
        'seccompProfile (pod and containers "i", "c" must not set securityContext.seccompProfile.type to "Unconfined")',
    ),
    (
        {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}},
        'forbidden AppArmor profile (pod must not set AppArmor profile type to "Unconfined")',
    ),
    ({"securityContext": {"sysctls": [{"name": "a", "value": "1"}]}}, "forbidden sysctls (a)"),
    (
        {"securityContext": {"windowsOptions": {"hostProcess": True}}},
        "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)",
    ),
]

RESTRICTED_VIOLATIONS = [
    (
        FINE | {"volumes": [{"name": "v", "nfs": {"server": "s", "path": "/"}}, {"name": "w", "emptyDir": {}}]},
        'restricted volume types (volume "v" uses restricted volume type "nfs")',
    ),
    (
        FINE | {"securityContext": {"runAsNonRoot": False, "runAsUser": 0, "seccompProfile": {"type": "Localhost"}}},
        "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false), runAsUser=0 (pod must not set "
        "runAsUser=0)",
    ),
    (
        FINE | {"securityContext": {}},
        'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), seccompProfile (pod '
        'or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
    ),
    (
        FINE | {"containers": [CONTAINER | {"securityContext": {"capabilities": {"add": ["CHOWN"]}}}]},
        'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), '
        'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]; container "c" '
        'must not include "CHOWN" in securityContext.capabilities.add)',
    ),
]


@pytest.mark.parametrize(("spec", "text"), BASELINE_VIOLATIONS)
def test_what_baseline_forbids(spec: Any, text: Any) -> None:
    assert violation_texts(BASELINE, spec) == text
    assert violation_texts(PRIVILEGED, spec) == ""


@pytest.mark.parametrize(("spec", "text"), RESTRICTED_VIOLATIONS)
def test_what_restricted_forbids_beyond_that(spec: Any, text: Any) -> None:
    assert violation_texts(RESTRICTED, spec) == text
    assert violation_texts(BASELINE, spec) == ""


def test_what_is_fine_is_fine_in_every_version() -> None:
    assert [minor for minor in (*range(60), LATEST) if violation_texts(RESTRICTED, FINE, minor)] == []


APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/c"
SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"


def test_annotations_of_old() -> None:
    assert violation_texts(BASELINE, {}, annotations={APP_ARMOR: "unconfined"}) == (
        "forbidden AppArmor profile (annotation must not set AppArmor profile type to "
        '"container.apparmor.security.beta.kubernetes.io/c="unconfined"")'
    )
    assert violation_texts(BASELINE, {}, 18, annotations={SECCOMP: "unconfined"}) == (
        'seccompProfile (forbidden annotation seccomp.security.alpha.kubernetes.io/pod="unconfined")'
    )
    assert violation_texts(BASELINE, {}, 19, annotations={SECCOMP: "unconfined"}) == ""


USER_NAMESPACE = {"hostUsers": False}
WINDOWS = {"os": {"name": "windows"}, "securityContext": {"runAsNonRoot": True}}


@pytest.mark.parametrize(
    ("level", "spec", "last_refused", "first_allowed"),
    [
        (BASELINE, with_sysctl("net.ipv4.ip_local_reserved_ports"), 26, 27),
        (BASELINE, with_sysctl("net.ipv4.tcp_keepalive_time"), 28, 29),
        (BASELINE, with_sysctl("net.ipv4.tcp_rmem"), 31, 32),
        (BASELINE, {"securityContext": {"seLinuxOptions": {"type": "container_engine_t"}}}, 30, 31),
        (BASELINE, USER_NAMESPACE | spec_with_context(procMount="Unmasked"), 34, 35),
        (RESTRICTED, AS_ROOT | USER_NAMESPACE, 34, 35),
        (RESTRICTED, WINDOWS, 24, 25),
    ],
)
def test_what_newer_versions_allow(level: Any, spec: Any, last_refused: int, first_allowed: int) -> None:
    assert violation_texts(level, spec, last_refused) != ""
    assert violation_texts(level, spec, first_allowed) == ""


@pytest.mark.parametrize(
    ("level", "spec", "last_allowed", "first_refused"),
    [
        (BASELINE, {"containers": [CONTAINER | {"startupProbe": {"tcpSocket": {"port": 1, "host": "h"}}}]}, 33, 34),
        (BASELINE, {"securityContext": {"seccompProfile": UNCONFINED}}, 18, 19),
        (RESTRICTED, AS_ROOT, 22, 23),
    ],
)
def test_what_newer_versions_forbid(level: Any, spec: Any, last_allowed: int, first_refused: int) -> None:
    assert violation_texts(level, spec, last_allowed) == ""
    assert violation_texts(level, spec, first_refused) != ""


def test_an_unmasked_proc_is_never_restricted_though_baseline_allows_it_in_user_namespaces() -> None:
    spec = FINE | USER_NAMESPACE
    spec["containers"] = [
        CONTAINER | {"securityContext": {**FINE["containers"][0]["securityContext"], "procMount": "Unmasked"}}
    ]
    assert violation_texts(BASELINE, spec) == ""
    assert violation_texts(RESTRICTED, spec).startswith("procMount (")


def test_the_table_is_in_order() -> None:
    assert [(each.level != BASELINE, each.id) for each in CHECKS] == sorted(
        (each.level != BASELINE, each.id) for each in CHECKS
    )
    for check in CHECKS:
        since = [minor for minor, _ in check.versions]
        assert since == sorted(set(since))
        assert {each.id for each in CHECKS if each.level == BASELINE} >= {*check.overrides}


def test_violations_in_few_words_and_in_many() -> None:
    both = [Violation("one", "this"), Violation("two")]
    assert (reasons(both), details(both)) == ("one, two", "one (this), two")

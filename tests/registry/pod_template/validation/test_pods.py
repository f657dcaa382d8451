"""Validation of pods and templates, with the order and texts of a real server's errors."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.core import v1 as core
from steersman.machinery.errors.field import Path
from steersman.registry.pod_template.validation import env
from steersman.registry.pod_template.validation.leniency import pod_options, pod_template_options
from steersman.registry.pod_template.validation.pods import validate_pod_create, validate_pod_template_spec
from tests.registry.podspecs import CONTAINER, create_errors, defaulted_pod, messages, template

C0 = "spec.containers[0]"
V0 = "spec.volumes[0]"


def container(**fields: Any) -> dict[str, Any]:
    return {"containers": [CONTAINER | fields]}


def volume(**source: Any) -> dict[str, Any]:
    return {"volumes": [{"name": "v", **source}]}


CASES: list[tuple[dict[str, Any], list[str]]] = [
    # Containers
    ({"containers": []}, ["spec.containers: Required value"]),
    ({"containers": [{}]}, [f"{C0}.name: Required value", f"{C0}.image: Required value"]),
    (
        {"containers": [CONTAINER, CONTAINER]},
        ['spec.containers[1].name: Duplicate value: "c"'],
    ),
    (container(image=" x"), [f'{C0}.image: Invalid value: " x": must not have leading or trailing whitespace']),
    (
        container(imagePullPolicy="Odd"),
        [f'{C0}.imagePullPolicy: Unsupported value: "Odd": supported values: "Always", "IfNotPresent", "Never"'],
    ),
    (
        container(ports=[{"name": "UPPER"}, {"containerPort": 70000, "protocol": "Odd"}]),
        [
            f'{C0}.ports[0].name: Invalid value: "UPPER": '
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
            f'{C0}.ports[0].name: Invalid value: "UPPER": must contain at least one letter (a-z)',
            f"{C0}.ports[0].containerPort: Required value",
            f"{C0}.ports[1].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
            f'{C0}.ports[1].protocol: Unsupported value: "Odd": supported values: "SCTP", "TCP", "UDP"',
        ],
    ),
    (
        container(ports=[{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 9}]),
        [f'{C0}.ports[1].hostPort: Duplicate value: "TCP//9"'],
    ),
    (
        container(env=[{"name": "", "value": "x"}, {"name": "A", "value": "x", "valueFrom": {}}]),
        [
            f"{C0}.env[0].name: Required value",
            f'{C0}.env[1].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, '
            "`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        ],
    ),
    (
        container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.restartPolicy"}}}]),
        [
            f'{C0}.env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "spec.restartPolicy": supported values: '
            '"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", '
            '"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"'
        ],
    ),
    (
        container(env=[{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}}}]),
        [
            f'{C0}.env[0].valueFrom.resourceFieldRef.divisor: Invalid value: "limits.cpu": '
            "only divisor's values 1m and 1 are supported with the cpu resource"
        ],
    ),
    (
        container(envFrom=[{}]),
        [f'{C0}.envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`'],
    ),
    (
        container(volumeMounts=[{"name": "x", "mountPath": ""}]),
        [f'{C0}.volumeMounts[0].name: Not found: "x"', f"{C0}.volumeMounts[0].mountPath: Required value"],
    ),
    (
        container(livenessProbe={"successThreshold": 2, "exec": {}}),
        [
            f"{C0}.livenessProbe.exec.command: Required value",
            f"{C0}.livenessProbe.successThreshold: Invalid value: 2: must be 1",
        ],
    ),
    (container(lifecycle={"preStop": {}}), [f"{C0}.lifecycle.preStop: Required value: must specify a handler type"]),
    (
        container(lifecycle={"preStop": {"sleep": {"seconds": 31}}}),
        [
            f"{C0}.lifecycle.preStop.sleep: Invalid value: 31: "
            "must be non-negative and less than terminationGracePeriodSeconds (30)"
        ],
    ),
    (
        container(resources={"requests": {"cpu": "2", "nothing": "1"}, "limits": {"cpu": "1"}}),
        [
            f'{C0}.resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
            f'{C0}.resources.requests[nothing]: Invalid value: "nothing": '
            "must be a standard resource type or fully qualified",
            f'{C0}.resources.requests[nothing]: Invalid value: "nothing": must be a standard resource for containers',
        ],
    ),
    (
        container(resources={"requests": {"hugepages-2Mi": "3Mi"}, "limits": {"hugepages-2Mi": "3Mi"}}),
        [
            f'{C0}.resources.limits[hugepages-2Mi]: Invalid value: "3Mi": '
            "3Mi is not positive integer multiple of hugepages-2Mi",
            f'{C0}.resources.requests[hugepages-2Mi]: Invalid value: "3Mi": '
            "3Mi is not positive integer multiple of hugepages-2Mi",
            f"{C0}.resources: Forbidden: HugePages require cpu or memory",
        ],
    ),
    (
        container(resources={"claims": [{"name": "r"}]}),
        [
            f'{C0}.resources.claims[0]: Not found: "r": '
            "must be one of the names in pod.spec.resourceClaims which is empty"
        ],
    ),
    (
        container(securityContext={"privileged": True, "allowPrivilegeEscalation": False}),
        [
            f'{C0}.securityContext: Invalid value: {{"Capabilities":null,"Privileged":true,"SELinuxOptions":null,'
            '"WindowsOptions":null,"RunAsUser":null,"RunAsGroup":null,"RunAsNonRoot":null,'
            '"ReadOnlyRootFilesystem":null,"AllowPrivilegeEscalation":false,"ProcMount":null,"SeccompProfile":null,'
            '"AppArmorProfile":null}: cannot set `allowPrivilegeEscalation` to false and `privileged` to true'
        ],
    ),
    (
        {"initContainers": [{"name": "c", "image": "x", "livenessProbe": {"exec": {"command": ["a"]}}}]},
        [
            'spec.initContainers[0].name: Duplicate value: "c"',
            "spec.initContainers[0].livenessProbe: Forbidden: "
            "may not be set for init containers without restartPolicy=Always",
        ],
    ),
    (
        {"ephemeralContainers": [{"name": "e", "image": "x"}]},
        ["spec.ephemeralContainers: Forbidden: cannot be set on create"],
    ),
    # Volumes
    (
        {"volumes": [{"name": "v"}, {"name": "v"}, {"name": ""}]},
        ['spec.volumes[1].name: Duplicate value: "v"', "spec.volumes[2].name: Required value"],
    ),
    (
        volume(hostPath={"path": "/a/../b", "type": "Odd"}, emptyDir={}),
        [f"{V0}.hostPath: Forbidden: may not specify more than 1 volume type"],
    ),
    (
        volume(hostPath={"path": "/a/../b", "type": "Odd"}),
        [
            f"{V0}.hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
            f'{V0}.hostPath.type: Unsupported value: "Odd": supported values: "", "BlockDevice", "CharDevice", '
            '"Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"',
        ],
    ),
    (
        volume(secret={"secretName": "s", "defaultMode": 512, "items": [{"key": "", "path": "/a"}]}),
        [
            f"{V0}.secret.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive",
            f"{V0}.secret.items[0].key: Required value",
            f'{V0}.secret.items[0].path: Invalid value: "/a": must be a relative path',
        ],
    ),
    (
        volume(iscsi={"targetPortal": "p", "iqn": "odd", "lun": 300}),
        [
            f'{V0}.iscsi.iqn: Invalid value: "odd": must be valid format starting with iqn, eui, or naa',
            f"{V0}.iscsi.lun: Invalid value: 300: must be between 0 and 255, inclusive",
        ],
    ),
    (
        volume(ephemeral={"volumeClaimTemplate": {"metadata": {"name": "x"}, "spec": {}}}),
        [
            f"{V0}.ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set",
            f"{V0}.ephemeral.volumeClaimTemplate.spec.accessModes: Required value: at least 1 access mode is required",
            f"{V0}.ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value",
        ],
    ),
    (
        volume(projected={"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 1}}]}),
        [
            f"{V0}.projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 1: "
            "may not specify a duration less than 10 minutes",
            f"{V0}.projected.sources[0].serviceAccountToken: Forbidden: "
            "must not be specified when serviceAccountName is not set",
        ],
    ),
    # The spec
    (
        {"restartPolicy": "Odd"},
        ['spec.restartPolicy: Unsupported value: "Odd": supported values: "Always", "OnFailure", "Never"'],
    ),
    (
        {"dnsPolicy": "None"},
        ["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
    ),
    (
        {"dnsConfig": {"nameservers": ["1.1.1.1", "2", "3.3.3.3", "4.4.4.4"], "options": [{"name": ""}]}},
        [
            'spec.dnsConfig.nameservers: Invalid value: ["1.1.1.1","2","3.3.3.3","4.4.4.4"]: '
            "must not have more than 3 nameservers",
            'spec.dnsConfig.nameservers[1]: Invalid value: "2": '
            "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
            "spec.dnsConfig.options[0]: Required value: must not be empty",
        ],
    ),
    (
        {"nodeName": "n", "schedulingGates": [{"name": "a.b/c"}, {"name": "a.b/c"}]},
        [
            'spec.schedulingGates[1]: Duplicate value: "a.b/c"',
            "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
        ],
    ),
    (
        {"tolerations": [{"value": "x"}, {"key": "k", "operator": "Lt", "value": "5", "effect": "Odd"}]},
        [
            'spec.tolerations[0].operator: Invalid value: "": operator must be Exists when `key` is empty, '
            'which means "match all values and all keys"',
            'spec.tolerations[1].operator: Unsupported value: "Lt": supported values: "Equal", "Exists", "Lt", "Gt"',
            'spec.tolerations[1].effect: Unsupported value: "Odd": supported values: "NoSchedule", '
            '"PreferNoSchedule", "NoExecute"',
        ],
    ),
    (
        {
            "topologySpreadConstraints": [
                {"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "Odd", "minDomains": 0}
            ]
        },
        [
            "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
            'spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "Odd": '
            'supported values: "DoNotSchedule", "ScheduleAnyway"',
            "spec.topologySpreadConstraints[0].minDomains: Invalid value: 0: must be greater than zero",
            "spec.topologySpreadConstraints[0].minDomains: Invalid value: 0: "
            "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not Odd",
        ],
    ),
    (
        {"hostUsers": False, "hostPID": True, "hostNetwork": True},
        [
            "spec.hostNetwork: Forbidden: when `hostUsers` is false",
            "spec.HostPID: Forbidden: when `hostUsers` is false",
        ],
    ),
    (
        {"os": {"name": "windows"}, "securityContext": {"runAsUser": 1}, "hostPID": True},
        [
            "spec.hostPID: Forbidden: cannot be set for a windows pod",
            "spec.securityContext.runAsUser: Forbidden: cannot be set for a windows pod",
        ],
    ),
    (
        {"resourceClaims": [{"name": "r"}]},
        [
            'spec.resourceClaims[0]: Invalid value: {"Name":"r","ResourceClaimName":null,'
            '"ResourceClaimTemplateName":null}: must specify one of: `resourceClaimName`, `resourceClaimTemplateName`'
        ],
    ),
    (
        {
            "resources": {"requests": {"cpu": "1"}, "limits": {"storage": "1Gi", "cpu": "2"}},
            **container(resources={"limits": {"cpu": "3"}}),
        },
        [
            'spec.resources.limits[storage]: Unsupported value: "storage": '
            'supported values: "cpu", "hugepages-", "memory"',
            'spec.resources.requests[cpu]: Invalid value: "1": '
            "must be greater than or equal to aggregate container requests of 3",
            'spec.resources.containers[0][cpu].limits: Invalid value: "3": '
            "must be less than or equal to pod limits of 2",
        ],
    ),
    (
        {
            "securityContext": {"sysctls": [{"name": "bad name", "value": "a"}, {"name": "net.a", "value": "b"}]},
            "hostNetwork": True,
        },
        [
            'spec.securityContext.sysctls[0].name: Invalid value: "bad name": must have at most 253 characters and '
            r"match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$",
            'spec.securityContext.sysctls[1].name: Invalid value: "net.a": '
            "may not be specified when 'hostNetwork' is true",
        ],
    ),
    (
        {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "01"}}},
        [
            "metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: "
            'Invalid value: "01": must be a 32bit integer'
        ],
    ),
]


@pytest.mark.parametrize(("spec", "expected"), CASES)
def test_refused_pods(spec: dict[str, Any], expected: list[str]) -> None:
    assert create_errors(**spec) == expected


def test_a_pod_that_uses_much_is_fine() -> None:
    assert (
        create_errors(
            serviceAccountName="sa",
            volumes=[
                {"name": "e"},
                {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
                {"name": "claim", "persistentVolumeClaim": {"claimName": "x"}},
            ],
            initContainers=[
                {"name": "s", "image": "x", "restartPolicy": "Always", "startupProbe": {"tcpSocket": {"port": 1}}}
            ],
            containers=[
                {
                    "name": "c",
                    "image": "x",
                    "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['x']"}}}],
                    "volumeMounts": [{"name": "e", "mountPath": "/e"}, {"name": "p", "mountPath": "/p"}],
                    "volumeDevices": [{"name": "claim", "devicePath": "/dev/x"}],
                    "resources": {"limits": {"example.com/gpu": "1", "cpu": "1"}},
                    "restartPolicy": "OnFailure",
                    "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}],
                }
            ],
            affinity={
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
                        ]
                    }
                }
            },
        )
        == []
    )


def test_privileged_containers_where_the_server_does_not_allow_them() -> None:
    pod = defaulted_pod(**container(securityContext={"privileged": True}))
    options = pod_options(None, is_pod=True, allow_privileged=False)
    assert messages(validate_pod_create(pod, options)) == [
        f"{C0}.securityContext.privileged: Forbidden: disallowed by cluster policy"
    ]


def test_templates_are_validated_where_they_stand() -> None:
    made = template({"labels": {"a b": "c"}}, containers=[{"name": "c", "image": " "}], ephemeralContainers=[CONTAINER])
    errors = messages(validate_pod_template_spec(made, Path("spec", "template")))
    assert [error.partition(":")[0] for error in errors] == [
        "spec.template.labels",
        "spec.template.spec.ephemeralContainers[0].name",
        "spec.template.spec.ephemeralContainers",
    ]


def test_an_update_may_keep_what_was_stored() -> None:
    terms = [
        {"topologyKey": "z", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["-"]}]}}
    ]
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    cost = {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "x"}}
    stored = template(cost, affinity=affinity, tolerations=[{"key": "k", "operator": "Gt", "value": "5"}])
    path = Path("template")
    assert len(messages(validate_pod_template_spec(stored, path, pod_template_options(None)))) == 3
    assert messages(validate_pod_template_spec(stored, path, pod_template_options(stored))) == []


SELECTORS = st.sampled_from(
    (
        None,
        core.SecretKeySelector(name="a", key="k"),
        core.SecretKeySelector(name="A", key="k"),
        core.SecretKeySelector(name="a", key=".."),
        core.SecretKeySelector(name="a"),
    )
)
FIELDS = st.sampled_from(
    (
        None,
        core.ObjectFieldSelector(api_version="v1", field_path="metadata.name"),
        core.ObjectFieldSelector(field_path="metadata.name"),
        core.ObjectFieldSelector(api_version="v1", field_path="metadata.labels['a']"),
    )
)
MAPS = st.sampled_from((None, core.ConfigMapKeySelector(name="a.b", key="k.x"), core.ConfigMapKeySelector(key="k")))


@given(FIELDS, SELECTORS, MAPS)
def test_nothing_is_wrong_with_usual_sources_of_variables(
    field: core.ObjectFieldSelector | None,
    secret: core.SecretKeySelector | None,
    config_map: core.ConfigMapKeySelector | None,
) -> None:
    source = core.EnvVarSource(field_ref=field, secret_key_ref=secret, config_map_key_ref=config_map)
    if env.is_usual(source):
        assert list(env.validate_value_from(source, "", Path("env"))) == []
    alone = [each for each in (field, secret, config_map) if each is not None]
    if len(alone) != 1:
        assert not env.is_usual(source)

"""A valid object of each kind that an editor of a namespace may write, with most of its fields set."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

from tools.cluster_attacks.cluster import Plain

SIMULATION: Final = "simulation.steersman.dev/"

_LABELS: Final = {"app": "a"}
_SELECTOR: Final[Plain] = {
    "matchLabels": _LABELS,
    "matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}],
}
_LABEL_SELECTOR: Final[Plain] = {
    "matchLabels": {"b": "c"},
    "matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}],
}
_NODE_TERM: Final[Plain] = {
    "matchExpressions": [{"key": "no-such-label", "operator": "DoesNotExist"}],
    "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["nobody"]}],
}
_TOLERATION: Final[Plain] = {
    "key": "k",
    "operator": "Equal",
    "value": "v",
    "effect": "NoExecute",
    "tolerationSeconds": 1,
}
_POD_TERM: Final[Plain] = {
    "labelSelector": _LABEL_SELECTOR,
    "namespaceSelector": _LABEL_SELECTOR,
    "namespaces": ["other"],
    "topologyKey": "kubernetes.io/hostname",
}
_PROBE: Final[Plain] = {
    "exec": {"command": ["true"]},
    "initialDelaySeconds": 1,
    "periodSeconds": 1,
    "timeoutSeconds": 1,
    "successThreshold": 1,
    "failureThreshold": 3,
    "terminationGracePeriodSeconds": 5,
}
_HTTP_PROBE: Final[Plain] = {
    "httpGet": {"path": "/a", "port": 80, "host": "b", "scheme": "HTTP", "httpHeaders": [{"name": "a", "value": "b"}]}
}
_READINESS: Final[Plain] = {key: value for key, value in _PROBE.items() if key != "terminationGracePeriodSeconds"}
_CONTAINER: Final[Plain] = {
    "name": "c",
    "image": "busybox",
    "command": ["sh", "-c", "echo $(A) $B; cat /v/a; sleep 2; exit 1"],
    "args": ["x"],
    "workingDir": "/w",
    "env": [
        {"name": "A", "value": "a"},
        {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['a']"}}},
        {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k", "optional": True}}},
        {"name": "D", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
    ],
    "envFrom": [{"prefix": "P", "configMapRef": {"name": "m", "optional": True}}],
    "ports": [{"name": "p", "containerPort": 80, "hostPort": 8080, "hostIP": "127.0.0.1", "protocol": "TCP"}],
    "resources": {"requests": {"cpu": "1m"}, "limits": {"cpu": "1", "memory": "1Gi"}},
    "volumeMounts": [
        {"name": "v", "mountPath": "/v", "subPath": "", "readOnly": True},
        {"name": "e", "mountPath": "/e"},
    ],
    "livenessProbe": _PROBE,
    "readinessProbe": _READINESS,
    "startupProbe": _PROBE,
    "lifecycle": {"postStart": {"sleep": {"seconds": 1}}, "preStop": {"exec": {"command": ["true"]}}},
    "securityContext": {"runAsUser": 1, "runAsGroup": 1, "capabilities": {"add": ["CHOWN"], "drop": ["KILL"]}},
    "terminationMessagePath": "/e/m",
}
_WEIGHED_POD_TERM: Final[Plain] = {"weight": 1, "podAffinityTerm": _POD_TERM}
_POD_SPEC: Final[Plain] = {
    "containers": [_CONTAINER],
    "initContainers": [{"name": "i", "image": "busybox", "command": ["true"], "env": [{"name": "A", "value": "a"}]}],
    "volumes": [
        {
            "name": "v",
            "projected": {
                "defaultMode": 420,
                "sources": [
                    {
                        "downwardAPI": {
                            "items": [{"path": "a", "fieldRef": {"fieldPath": "metadata.annotations"}, "mode": 420}]
                        }
                    },
                    {"configMap": {"name": "m", "optional": True, "items": [{"key": "k", "path": "k", "mode": 420}]}},
                    {"serviceAccountToken": {"path": "t", "expirationSeconds": 3600, "audience": "a"}},
                ],
            },
        },
        {"name": "e", "emptyDir": {"sizeLimit": "1Gi"}},
    ],
    "terminationGracePeriodSeconds": 1,
    "activeDeadlineSeconds": 60,
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_NODE_TERM]},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": _NODE_TERM}],
        },
        "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [_WEIGHED_POD_TERM]},
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [_POD_TERM],
            "preferredDuringSchedulingIgnoredDuringExecution": [_WEIGHED_POD_TERM],
        },
    },
    "tolerations": [_TOLERATION],
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": _LABEL_SELECTOR,
            "matchLabelKeys": ["app"],
        }
    ],
    "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["a"]}],
    "dnsConfig": {"nameservers": ["1.2.3.4"], "searches": ["a"], "options": [{"name": "a", "value": "b"}]},
    "imagePullSecrets": [{"name": "s"}],
    "readinessGates": [{"conditionType": "a"}],
    "hostname": "h",
    "subdomain": "s",
    "securityContext": {
        "fsGroup": 1,
        "supplementalGroups": [1],
        "runAsUser": 1,
        "sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "1"}],
    },
    "serviceAccountName": "default",
    "schedulerName": "default-scheduler",
    "restartPolicy": "Always",
}
_ANNOTATIONS: Final = {
    "a": "b",
    **{
        f"{SIMULATION}{name}": value
        for name, value in {
            "run-for": "1s",
            "exit-code": "1",
            "oom-after": "5s",
            "start-delay": "0s",
            "ready-after": "0s",
            "stop-after": "0s",
            "pull-time": "0s",
            "fails-startup": "false",
            "fails-liveness": "9s",
            "fails-readiness": "9s",
            "logs": "a\nb",
            "log-every": "1s",
            "cpu": "1m",
            "memory": "1Mi",
        }.items()
    },
}
_SMALL_SPEC: Final[Plain] = {"containers": [{"name": "c", "image": "busybox", "env": [{"name": "A", "value": "a"}]}]}


def _template(**spec: Any) -> Plain:
    metadata = {"labels": _LABELS, "annotations": {"a": "b"}}
    return {"metadata": metadata, "spec": {**deepcopy(_SMALL_SPEC), **spec}}


_JOB_SPEC: Final[Plain] = {
    "parallelism": 2,
    "completions": 3,
    "activeDeadlineSeconds": 60,
    "backoffLimit": 2,
    "ttlSecondsAfterFinished": 60,
    "completionMode": "Indexed",
    "backoffLimitPerIndex": 1,
    "maxFailedIndexes": 1,
    "podFailurePolicy": {
        "rules": [{"action": "Count", "onExitCodes": {"containerName": "c", "operator": "In", "values": [1, 2]}}]
    },
    "successPolicy": {"rules": [{"succeededIndexes": "0-1", "succeededCount": 1}]},
    "template": _template(restartPolicy="Never"),
}
_TARGET: Final[Plain] = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
_METRIC: Final[Plain] = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
}
_SCALING: Final[Plain] = {
    "stabilizationWindowSeconds": 1,
    "selectPolicy": "Max",
    "policies": [{"type": "Pods", "value": 1, "periodSeconds": 1}],
}

SAMPLES: Final[dict[str, Plain]] = {
    "pods": {"metadata": {"labels": _LABELS, "annotations": _ANNOTATIONS}, "spec": _POD_SPEC},
    "pods-http": {
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    "livenessProbe": _HTTP_PROBE,
                    "readinessProbe": {"tcpSocket": {"port": 80, "host": "h"}},
                    "startupProbe": {"grpc": {"port": 80, "service": "s"}},
                    "restartPolicyRules": None,
                }
            ]
        }
    },
    "configmaps": {"data": {"a": "b"}, "binaryData": {"c": "ZA=="}},
    "secrets": {"type": "Opaque", "data": {"c": "ZA=="}, "stringData": {"a": "b"}},
    "serviceaccounts": {"secrets": [{"name": "s"}], "imagePullSecrets": [{"name": "s"}]},
    "services": {
        "spec": {
            "type": "LoadBalancer",
            "selector": _LABELS,
            "externalIPs": ["1.2.3.4"],
            "sessionAffinity": "ClientIP",
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 1}},
            "loadBalancerSourceRanges": ["1.2.3.0/24"],
            "ports": [{"name": "p", "port": 80, "targetPort": 80, "nodePort": 30123, "appProtocol": "http"}],
            "healthCheckNodePort": 30124,
            "externalTrafficPolicy": "Local",
            "loadBalancerClass": "a.b/c",
        }
    },
    "services-external": {"spec": {"type": "ExternalName", "externalName": "a.b"}},
    "persistentvolumeclaims": {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "selector": _LABEL_SELECTOR,
            "storageClassName": "standard",
            "volumeMode": "Filesystem",
        }
    },
    "replicationcontrollers": {
        "spec": {"replicas": 1, "minReadySeconds": 1, "selector": _LABELS, "template": _template()}
    },
    "podtemplates": {"template": _template()},
    "events": {
        "involvedObject": {"namespace": "attacker", "name": "a", "fieldPath": "f"},
        "reason": "r",
        "message": "m",
        "reportingComponent": "a.b/c",
        "type": "Normal",
        "count": 1,
        "source": {"component": "c", "host": "h"},
        "note": "n",
        "action": "a",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "a.b/c",
        "reportingInstance": "i",
        "regarding": {"namespace": "attacker", "name": "a", "fieldPath": "f"},
        "series": None,
    },
    "deployments": {
        "spec": {
            "replicas": 1,
            "minReadySeconds": 1,
            "revisionHistoryLimit": 1,
            "progressDeadlineSeconds": 60,
            "selector": _SELECTOR,
            "template": _template(),
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}},
        }
    },
    "replicasets": {"spec": {"replicas": 1, "minReadySeconds": 1, "selector": _SELECTOR, "template": _template()}},
    "statefulsets": {
        "spec": {
            "replicas": 1,
            "minReadySeconds": 1,
            "revisionHistoryLimit": 1,
            "serviceName": "s",
            "selector": _SELECTOR,
            "template": _template(),
            "ordinals": {"start": 1},
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1, "maxUnavailable": 1}},
            "volumeClaimTemplates": [
                {
                    "metadata": {"name": "v"},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
                }
            ],
        }
    },
    "daemonsets": {
        "spec": {
            "minReadySeconds": 1,
            "revisionHistoryLimit": 1,
            "selector": _SELECTOR,
            "template": _template(),
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        }
    },
    "jobs": {"spec": _JOB_SPEC},
    "cronjobs": {
        "spec": {
            "schedule": "* * * * *",
            "timeZone": "Etc/UTC",
            "startingDeadlineSeconds": 30,
            "successfulJobsHistoryLimit": 1,
            "failedJobsHistoryLimit": 1,
            "jobTemplate": {"spec": _JOB_SPEC},
        }
    },
    "horizontalpodautoscalers": {
        "spec": {
            "minReplicas": 1,
            "maxReplicas": 2,
            "scaleTargetRef": _TARGET,
            "metrics": [
                _METRIC,
                {
                    "type": "Pods",
                    "pods": {
                        "metric": {"name": "m", "selector": _LABEL_SELECTOR},
                        "target": {"type": "AverageValue", "averageValue": "1"},
                    },
                },
            ],
            "behavior": {"scaleUp": {**_SCALING, "tolerance": "0.1"}, "scaleDown": _SCALING},
        }
    },
    "poddisruptionbudgets": {"spec": {"maxUnavailable": 1, "selector": _SELECTOR}},
    "poddisruptionbudgets-min": {"spec": {"minAvailable": 1, "selector": _SELECTOR}},
    "ingresses": {
        "spec": {
            "ingressClassName": "c",
            "tls": [{"hosts": ["a.b"], "secretName": "s"}],
            "defaultBackend": {"service": {"name": "s", "port": {"number": 80}}},
            "rules": [
                {
                    "host": "a.b",
                    "http": {
                        "paths": [
                            {
                                "path": "/a",
                                "pathType": "Prefix",
                                "backend": {"service": {"name": "s", "port": {"number": 80}}},
                            }
                        ]
                    },
                }
            ],
        }
    },
    "networkpolicies": {
        "spec": {
            "podSelector": _LABEL_SELECTOR,
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [
                {
                    "ports": [{"protocol": "TCP", "port": 80, "endPort": 90}],
                    "from": [
                        {"ipBlock": {"cidr": "1.2.3.0/24", "except": ["1.2.3.0/28"]}},
                        {"podSelector": _LABEL_SELECTOR},
                    ],
                }
            ],
            "egress": [
                {"ports": [{"protocol": "TCP", "port": 80, "endPort": 90}], "to": [{"podSelector": _LABEL_SELECTOR}]}
            ],
        }
    },
    "leases": {
        "spec": {
            "holderIdentity": "h",
            "leaseDurationSeconds": 1,
            "leaseTransitions": 1,
            "strategy": "OldestEmulationVersion",
            "preferredHolder": "p",
        }
    },
    "resourceclaims": {
        "spec": {
            "devices": {
                "requests": [
                    {
                        "name": "r",
                        "exactly": {
                            "deviceClassName": "none",
                            "count": 1,
                            "allocationMode": "ExactCount",
                            "selectors": [{"cel": {"expression": "true"}}],
                            "tolerations": [_TOLERATION],
                        },
                    }
                ],
                "constraints": [{"requests": ["r"], "matchAttribute": "a.b/c"}],
            }
        }
    },
    "resourceclaimtemplates": {
        "spec": {
            "metadata": {"labels": _LABELS},
            "spec": {
                "devices": {
                    "requests": [
                        {
                            "name": "r",
                            "exactly": {"deviceClassName": "none", "count": 1, "allocationMode": "ExactCount"},
                        }
                    ]
                }
            },
        }
    },
    "controllerrevisions": {"revision": 1, "data": {"a": "b"}},
    "endpointslices": {
        "addressType": "IPv4",
        "ports": [{"name": "p", "port": 80, "protocol": "TCP", "appProtocol": "http"}],
        "endpoints": [
            {
                "addresses": ["10.1.2.3"],
                "hostname": "h",
                "nodeName": "n",
                "zone": "z",
                "hints": {"forZones": [{"name": "z"}]},
                "deprecatedTopology": None,
            }
        ],
    },
    "endpoints": {
        "subsets": [{"addresses": [{"ip": "10.1.2.3", "hostname": "h"}], "ports": [{"name": "p", "port": 80}]}]
    },
    "limitranges": {"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}, "max": {"cpu": "2"}}]}},
    "resourcequotas": {"spec": {"hard": {"pods": "100"}, "scopes": ["NotTerminating"]}},
    "roles": {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": ["a"]}]},
    "rolebindings": {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "u"}],
    },
    "csistoragecapacities": {
        "storageClassName": "c",
        "capacity": "1Gi",
        "maximumVolumeSize": "1Gi",
        "nodeTopology": _LABEL_SELECTOR,
    },
    "localsubjectaccessreviews": {
        "spec": {
            "user": "u",
            "groups": ["g"],
            "extra": {"e": ["v"]},
            "resourceAttributes": {"namespace": "attacker", "verb": "get", "resource": "pods"},
        }
    },
}
"""By the plural of the kind; further ones of it have something behind a hyphen. Members that are null are left out."""


def sample(name: str) -> Plain:
    """Return a copy of a sample, with a name in its metadata."""
    without_nulls: Plain = _without_nulls(deepcopy(SAMPLES[name]))
    without_nulls.setdefault("metadata", {}).update(name="attack", namespace="attacker")
    return without_nulls


def resource_of(name: str) -> str:
    """Return the plural of a sample's kind."""
    return name.partition("-")[0]


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nulls(each) for each in value]
    return value

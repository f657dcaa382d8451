"""Facts about fields of built-in types that their OpenAPI schemas do not have, and their validation does.

They only make valid objects likely: an object is judged by the validation itself, and repaired where facts are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about a type: schemas of its fields, further required fields, and fields that are not drawn.

    Of the fields in `one_of` a value has exactly one.
    """

    fields: Mapping[str, Schema] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    omitted: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()


def enum(*values: Any) -> Schema:
    """Return the schema of a text with these values."""
    return {"enum": list(values)}


def between(least: int, most: int) -> Schema:
    """Return the schema of an integer within limits."""
    return {"minimum": least, "maximum": most}


LABEL: Final[Schema] = {"pattern": "^[a-z]([-a-z0-9]{0,12}[a-z0-9])?$"}
SUBDOMAIN: Final[Schema] = {"pattern": r"^[a-z]([-a-z0-9]{0,8}[a-z0-9])?(\.[a-z]([-a-z0-9]{0,8}[a-z0-9])?)?$"}
KEY: Final[Schema] = {"pattern": r"^(example\.com/)?[a-z]([-a-z0-9]{0,8}[a-z0-9])?$"}
DOMAIN_KEY: Final[Schema] = {"pattern": r"^example\.com/[a-z]([-a-z0-9]{0,8}[a-z0-9])?$"}
PATH: Final[Schema] = {"pattern": "^/[a-z0-9]{1,8}(/[a-z0-9]{1,8})?$"}
RELATIVE: Final[Schema] = {"pattern": "^[a-z0-9]{1,8}(/[a-z0-9]{1,8})?$"}
IMAGE: Final[Schema] = {"pattern": "^[a-z]{1,8}(/[a-z]{1,8})?(:[0-9]{1,2})?$"}
VARIABLE: Final[Schema] = {"pattern": "^[A-Z][A-Z0-9_]{0,8}$"}
TEXT: Final[Schema] = {"pattern": "^[a-z0-9]([-a-z0-9 ]{0,12}[a-z0-9])?$"}
PORT: Final = between(1, 65535)
SECONDS: Final = between(1, 3600)
COUNT: Final = between(0, 100)
IPV4: Final[Schema] = {"pattern": r"^10\.[1-9]\.[1-9]\.[1-9]$"}
CIDR: Final[Schema] = {"pattern": r"^10\.[1-9]\.0\.0/16$"}
PORT_OR_NAME: Final[Schema] = {"pattern": "^[a-z]{1,8}$", **PORT}
NUMBER_OR_PERCENT: Final[Schema] = {"pattern": "^([1-9]|[1-9][0-9])%$", **between(1, 20)}
QUANTITY: Final = "^[1-9][0-9]*([KMGTPE]i|[kMGTPE])?$"


def some(schema: Schema, *, least: int = 0, most: int | None = None) -> Schema:
    """Return the schema of a list of such items."""
    limits: Schema = {"minItems": least} if least else {}
    return {"items": schema, **limits, **({} if most is None else {"maxItems": most})}


def labels() -> Schema:
    """Return the schema of labels."""
    return {"additionalProperties": LABEL}


_PROBE: Final = Facts(
    {
        **dict.fromkeys(("periodSeconds", "timeoutSeconds", "failureThreshold"), SECONDS),
        "initialDelaySeconds": COUNT,
        "successThreshold": between(1, 1),
    },
    omitted=("terminationGracePeriodSeconds",),
    one_of=("exec", "httpGet", "tcpSocket", "grpc"),
)
_KEY_OF_OBJECT: Final = Facts({"name": SUBDOMAIN, "key": LABEL}, ("name", "key"))

FACTS: Final[Mapping[str, Facts]] = {
    "core.v1.PodSpec": Facts(
        {
            "containers": {"minItems": 1},
            "restartPolicy": enum("Always"),
            "dnsPolicy": enum("ClusterFirst", "Default", "ClusterFirstWithHostNet"),
            "nodeName": SUBDOMAIN,
            "serviceAccountName": SUBDOMAIN,
            "hostname": LABEL,
            "subdomain": LABEL,
            "schedulerName": SUBDOMAIN,
            "terminationGracePeriodSeconds": COUNT,
            "nodeSelector": labels(),
        },
        ("containers",),
        (
            "priorityClassName",
            "priority",
            "runtimeClassName",
            "overhead",
            "ephemeralContainers",
            "activeDeadlineSeconds",
            "preemptionPolicy",
            "serviceAccount",
            "resourceClaims",
            "resources",
            "os",
            "hostUsers",
            "hostnameOverride",
            "setHostnameAsFQDN",
            "schedulingGates",
            "readinessGates",
            "dnsConfig",
            "workloadRef",
            "schedulingGroup",
            "hostNetwork",
            "hostPID",
            "hostIPC",
            "securityContext",
            "nodeName",
            "initContainers",
        ),
    ),
    "core.v1.Container": Facts(
        {
            "name": LABEL,
            "image": IMAGE,
            "workingDir": PATH,
            "terminationMessagePath": PATH,
            "command": some(TEXT),
            "args": some(TEXT),
        },
        ("name", "image"),
        (
            "volumeDevices",
            "volumeMounts",
            "startupProbe",
            "restartPolicy",
            "restartPolicyRules",
            "resizePolicy",
            "securityContext",
        ),
    ),
    "core.v1.ContainerPort": Facts(
        {"containerPort": PORT, "hostIP": IPV4, "name": {"pattern": "^[a-z]{1,8}$"}},
        ("containerPort", "protocol"),
        ("hostPort",),
    ),
    "core.v1.EnvVar": Facts({"name": VARIABLE}, ("name",), ("valueFrom",)),
    "core.v1.EnvFromSource": Facts({"prefix": VARIABLE}, one_of=("configMapRef", "secretRef")),
    "core.v1.ResourceRequirements": Facts(
        {"limits": {"x-keys": ("cpu", "memory", "ephemeral-storage")}}, omitted=("claims", "requests")
    ),
    "core.v1.Probe": _PROBE,
    "core.v1.LifecycleHandler": Facts(one_of=("exec", "httpGet", "sleep")),
    "core.v1.Lifecycle": Facts(omitted=("stopSignal",)),
    "core.v1.SleepAction": Facts({"seconds": between(1, 1)}),
    "core.v1.ExecAction": Facts({"command": some(TEXT, least=1)}, ("command",)),
    "core.v1.HTTPGetAction": Facts(
        {"path": PATH, "port": PORT_OR_NAME, "host": SUBDOMAIN, "httpHeaders": {"maxItems": 2}}, ("path", "port")
    ),
    "core.v1.HTTPHeader": Facts({"name": {"pattern": "^[A-Z][a-z]{0,8}$"}}, ("name",)),
    "core.v1.TCPSocketAction": Facts({"port": PORT_OR_NAME, "host": SUBDOMAIN}, ("port",)),
    "core.v1.GRPCAction": Facts({"port": PORT}, ("port",)),
    "core.v1.LocalObjectReference": Facts({"name": SUBDOMAIN}, ("name",)),
    "core.v1.SecretEnvSource": Facts({"name": SUBDOMAIN}, ("name",)),
    "core.v1.ConfigMapEnvSource": Facts({"name": SUBDOMAIN}, ("name",)),
    "core.v1.ConfigMapKeySelector": _KEY_OF_OBJECT,
    "core.v1.SecretKeySelector": _KEY_OF_OBJECT,
    "core.v1.Toleration": Facts(
        {"key": KEY, "operator": enum("Exists"), "effect": enum("NoSchedule", "PreferNoSchedule")},
        ("operator",),
        ("value", "tolerationSeconds"),
    ),
    "core.v1.HostAlias": Facts({"ip": IPV4, "hostnames": some(SUBDOMAIN)}, ("ip",)),
    "core.v1.TopologySpreadConstraint": Facts(
        {"maxSkew": between(1, 5), "topologyKey": KEY},
        ("maxSkew", "topologyKey", "whenUnsatisfiable"),
        ("minDomains", "matchLabelKeys"),
    ),
    "core.v1.Volume": Facts(
        {"name": LABEL}, ("name",), one_of=("emptyDir", "configMap", "secret", "persistentVolumeClaim", "hostPath")
    ),
    "core.v1.EmptyDirVolumeSource": Facts({"medium": enum("", "Memory")}),
    "core.v1.HostPathVolumeSource": Facts({"path": PATH}, ("path",)),
    "core.v1.PersistentVolumeClaimVolumeSource": Facts({"claimName": SUBDOMAIN}, ("claimName",)),
    "core.v1.ConfigMapVolumeSource": Facts({"name": SUBDOMAIN, "defaultMode": between(0, 511)}, ("name",)),
    "core.v1.SecretVolumeSource": Facts({"secretName": SUBDOMAIN, "defaultMode": between(0, 511)}, ("secretName",)),
    "core.v1.KeyToPath": Facts({"key": LABEL, "path": RELATIVE, "mode": between(0, 511)}, ("key", "path")),
    "core.v1.NodeSelector": Facts({"nodeSelectorTerms": {"minItems": 1}}),
    "core.v1.NodeSelectorTerm": Facts(omitted=("matchFields",)),
    "core.v1.NodeSelectorRequirement": Facts(
        {"key": KEY, "operator": enum("In", "NotIn"), "values": some(LABEL, least=1)}, ("key", "operator", "values")
    ),
    "core.v1.PreferredSchedulingTerm": Facts({"weight": between(1, 100)}, ("weight", "preference")),
    "core.v1.WeightedPodAffinityTerm": Facts({"weight": between(1, 100)}, ("weight", "podAffinityTerm")),
    "core.v1.PodAffinityTerm": Facts(
        {"topologyKey": KEY, "namespaces": some(LABEL)}, ("topologyKey",), ("matchLabelKeys", "mismatchLabelKeys")
    ),
    "meta.v1.LabelSelector": Facts({"matchLabels": labels()}),
    "meta.v1.LabelSelectorRequirement": Facts(
        {"key": KEY, "operator": enum("In", "NotIn"), "values": some(LABEL, least=1)}, ("key", "operator", "values")
    ),
    "core.v1.PodTemplateSpec": Facts(required=("metadata", "spec")),
    "meta.v1.ObjectMeta": Facts(
        {"labels": labels(), "annotations": labels()},
        omitted=(
            "name",
            "namespace",
            "generateName",
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "ownerReferences",
            "finalizers",
            "managedFields",
            "selfLink",
        ),
    ),
    # apps
    "apps.v1.DeploymentSpec": Facts(
        {
            "replicas": COUNT,
            "minReadySeconds": between(0, 60),
            "revisionHistoryLimit": COUNT,
            "progressDeadlineSeconds": between(61, 600),
        },
        ("template",),
        ("selector",),
    ),
    "apps.v1.DeploymentStrategy": Facts({"type": enum("RollingUpdate")}),
    "apps.v1.RollingUpdateDeployment": Facts(dict.fromkeys(("maxSurge", "maxUnavailable"), NUMBER_OR_PERCENT)),
    "apps.v1.ReplicaSetSpec": Facts(
        {"replicas": COUNT, "minReadySeconds": between(0, 60)}, ("template",), ("selector",)
    ),
    "apps.v1.DaemonSetSpec": Facts(
        {"minReadySeconds": between(0, 60), "revisionHistoryLimit": COUNT}, ("template",), ("selector",)
    ),
    "apps.v1.DaemonSetUpdateStrategy": Facts({"type": enum("RollingUpdate")}),
    "apps.v1.RollingUpdateDaemonSet": Facts({"maxUnavailable": NUMBER_OR_PERCENT}, omitted=("maxSurge",)),
    "apps.v1.StatefulSetSpec": Facts(
        {
            "replicas": COUNT,
            "serviceName": LABEL,
            "minReadySeconds": between(0, 60),
            "revisionHistoryLimit": COUNT,
            "podManagementPolicy": enum("OrderedReady", "Parallel"),
        },
        ("template",),
        ("selector", "volumeClaimTemplates"),
    ),
    "apps.v1.StatefulSetUpdateStrategy": Facts({"type": enum("RollingUpdate")}),
    "apps.v1.RollingUpdateStatefulSetStrategy": Facts({"partition": COUNT, "maxUnavailable": NUMBER_OR_PERCENT}),
    "apps.v1.StatefulSetOrdinals": Facts({"start": COUNT}),
    "apps.v1.ControllerRevision": Facts({"revision": COUNT}, ("revision", "data")),
    # batch
    "batch.v1.JobSpec": Facts(
        {
            **dict.fromkeys(("parallelism", "completions", "backoffLimit", "ttlSecondsAfterFinished"), COUNT),
            "activeDeadlineSeconds": SECONDS,
        },
        ("template",),
        (
            "selector",
            "manualSelector",
            "completionMode",
            "backoffLimitPerIndex",
            "maxFailedIndexes",
            "managedBy",
            "podFailurePolicy",
            "successPolicy",
            "podReplacementPolicy",
        ),
    ),
    "batch.v1.CronJobSpec": Facts(
        {
            "schedule": enum("* * * * *", "*/5 * * * *", "0 3 * * 1-5", "@hourly"),
            "timeZone": enum("Etc/UTC", "Europe/Berlin"),
            "startingDeadlineSeconds": SECONDS,
            "successfulJobsHistoryLimit": COUNT,
            "failedJobsHistoryLimit": COUNT,
        },
        ("schedule", "jobTemplate"),
    ),
    "batch.v1.JobTemplateSpec": Facts(required=("spec",)),
    # core
    "core.v1.ServiceSpec": Facts(
        {
            "type": enum("ClusterIP", "NodePort", "LoadBalancer"),
            "selector": labels(),
            "ports": {"minItems": 1},
            "sessionAffinity": enum("ClientIP", "None"),
            "externalIPs": some(IPV4),
        },
        ("ports",),
        (
            "clusterIP",
            "clusterIPs",
            "ipFamilies",
            "ipFamilyPolicy",
            "externalName",
            "healthCheckNodePort",
            "loadBalancerIP",
            "loadBalancerClass",
            "loadBalancerSourceRanges",
            "allocateLoadBalancerNodePorts",
            "externalTrafficPolicy",
            "sessionAffinityConfig",
            "trafficDistribution",
        ),
    ),
    "core.v1.ServicePort": Facts(
        {"name": LABEL, "port": PORT, "targetPort": PORT_OR_NAME, "appProtocol": DOMAIN_KEY},
        ("name", "port", "protocol"),
        ("nodePort",),
    ),
    "core.v1.PodTemplate": Facts(required=("template",)),
    "core.v1.ConfigMap": Facts({"data": {"x-keys": ()}}, omitted=("binaryData",)),
    "core.v1.Secret": Facts({"type": enum("Opaque"), "stringData": {"x-keys": ()}}, omitted=("data",)),
    "core.v1.ServiceAccount": Facts(),
    "core.v1.ObjectReference": Facts(
        {"name": SUBDOMAIN, "kind": enum("Secret"), "apiVersion": enum("v1")},
        ("name",),
        ("namespace", "uid", "fieldPath", "resourceVersion"),
    ),
    "core.v1.NamespaceSpec": Facts(omitted=("finalizers",)),
    "core.v1.PersistentVolumeClaimSpec": Facts(
        {
            "accessModes": some(enum("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"), least=1),
            "storageClassName": SUBDOMAIN,
            "volumeName": SUBDOMAIN,
        },
        ("accessModes", "resources"),
        ("dataSource", "dataSourceRef", "volumeAttributesClassName"),
    ),
    "core.v1.VolumeResourceRequirements": Facts(
        {"requests": {"x-keys": ("storage",), "minProperties": 1}}, ("requests",), ("limits",)
    ),
    "core.v1.LimitRangeSpec": Facts({"limits": {"maxItems": 1}}, ("limits",)),
    "core.v1.LimitRangeItem": Facts(
        {"type": enum("Container"), "max": {"x-keys": ("cpu", "memory")}},
        ("type",),
        ("min", "default", "defaultRequest", "maxLimitRequestRatio"),
    ),
    "core.v1.ResourceQuotaSpec": Facts(
        {"hard": {"x-keys": ("pods", "services", "secrets", "configmaps", "limits.cpu", "requests.memory")}},
        omitted=("scopes", "scopeSelector"),
    ),
    "core.v1.ReplicationControllerSpec": Facts(
        {"replicas": COUNT, "minReadySeconds": between(0, 60)}, ("template",), ("selector",)
    ),
    "core.v1.NodeSpec": Facts({"providerID": TEXT}, omitted=("podCIDR", "podCIDRs", "configSource", "externalID")),
    "core.v1.Taint": Facts(
        {"key": KEY, "value": LABEL, "effect": enum("NoSchedule", "PreferNoSchedule")},
        ("key", "effect"),
        ("timeAdded",),
    ),
    "core.v1.PersistentVolumeSpec": Facts(
        {
            "accessModes": some(enum("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"), least=1),
            "capacity": {"x-keys": ("storage",), "minProperties": 1},
            "storageClassName": SUBDOMAIN,
            "persistentVolumeReclaimPolicy": enum("Retain", "Delete"),
        },
        ("accessModes", "capacity"),
        ("claimRef", "nodeAffinity", "volumeAttributesClassName", "mountOptions"),
        one_of=("hostPath",),
    ),
    "core.v1.EndpointSubset": Facts({"addresses": {"minItems": 1}}, ("addresses", "ports")),
    "core.v1.EndpointAddress": Facts({"ip": IPV4, "hostname": LABEL, "nodeName": SUBDOMAIN}, ("ip",), ("targetRef",)),
    "core.v1.EndpointPort": Facts(
        {"name": LABEL, "port": PORT, "appProtocol": DOMAIN_KEY}, ("name", "port", "protocol")
    ),
    # networking.k8s.io
    "networking.v1.IngressSpec": Facts({"ingressClassName": SUBDOMAIN}, ("defaultBackend",)),
    "networking.v1.IngressRule": Facts({"host": SUBDOMAIN}),
    "networking.v1.HTTPIngressRuleValue": Facts({"paths": {"minItems": 1}}, ("paths",)),
    "networking.v1.HTTPIngressPath": Facts(
        {"path": PATH, "pathType": enum("Prefix", "Exact")}, ("path", "pathType", "backend")
    ),
    "networking.v1.IngressBackend": Facts(one_of=("service",), omitted=("resource",)),
    "networking.v1.IngressServiceBackend": Facts({"name": LABEL}, ("name", "port")),
    "networking.v1.ServiceBackendPort": Facts(
        {"number": PORT, "name": {"pattern": "^[a-z]{1,8}$"}}, one_of=("number", "name")
    ),
    "networking.v1.IngressTLS": Facts({"hosts": some(SUBDOMAIN), "secretName": SUBDOMAIN}),
    "networking.v1.IngressClassSpec": Facts({"controller": DOMAIN_KEY}, ("controller",), ("parameters",)),
    "networking.v1.NetworkPolicySpec": Facts(
        {"policyTypes": {**some(enum("Ingress", "Egress"), most=2), "uniqueItems": True}}, ("podSelector",)
    ),
    "networking.v1.NetworkPolicyPort": Facts({"port": PORT_OR_NAME}, omitted=("endPort",)),
    "networking.v1.NetworkPolicyPeer": Facts(one_of=("podSelector", "namespaceSelector", "ipBlock")),
    "networking.v1.IPBlock": Facts({"cidr": CIDR}, ("cidr",), ("except",)),
    "networking.v1.ServiceCIDRSpec": Facts({"cidrs": some(CIDR, least=1, most=1)}, ("cidrs",)),
    "networking.v1.IPAddressSpec": Facts(required=("parentRef",)),
    "networking.v1.ParentReference": Facts(
        {"group": SUBDOMAIN, "name": LABEL, "namespace": LABEL, "resource": LABEL}, ("name", "resource")
    ),
    # rbac.authorization.k8s.io
    "rbac.v1.PolicyRule": Facts(
        {
            "verbs": some(enum("get", "list", "watch", "create", "*"), least=1),
            "apiGroups": some(enum("", "apps", "*"), least=1),
            "resources": some(enum("pods", "deployments", "pods/log", "*"), least=1),
            "resourceNames": some(LABEL),
        },
        ("verbs", "apiGroups", "resources"),
        ("nonResourceURLs",),
    ),
    "rbac.v1.Subject": Facts(
        {"kind": enum("User", "Group"), "name": LABEL, "apiGroup": enum("rbac.authorization.k8s.io")},
        ("kind", "name", "apiGroup"),
        ("namespace",),
    ),
    "rbac.v1.RoleRef": Facts(
        {"kind": enum("ClusterRole"), "name": LABEL, "apiGroup": enum("rbac.authorization.k8s.io")},
        ("kind", "name", "apiGroup"),
    ),
    "rbac.v1.ClusterRole": Facts(omitted=("aggregationRule",)),
    # autoscaling
    "autoscaling.v2.HorizontalPodAutoscalerSpec": Facts(
        {"minReplicas": between(1, 10), "maxReplicas": between(10, 100)}, ("maxReplicas", "scaleTargetRef")
    ),
    "autoscaling.v1.HorizontalPodAutoscalerSpec": Facts(
        {
            "minReplicas": between(1, 10),
            "maxReplicas": between(10, 100),
            "targetCPUUtilizationPercentage": between(1, 100),
        },
        ("maxReplicas", "scaleTargetRef"),
    ),
    **dict.fromkeys(
        ("autoscaling.v2.CrossVersionObjectReference", "autoscaling.v1.CrossVersionObjectReference"),
        Facts(
            {"kind": enum("Deployment"), "name": LABEL, "apiVersion": enum("apps/v1")}, ("kind", "name", "apiVersion")
        ),
    ),
    "autoscaling.v2.MetricSpec": Facts({"type": enum("Resource")}, ("type", "resource"), one_of=("resource",)),
    "autoscaling.v2.ResourceMetricSource": Facts({"name": enum("cpu", "memory")}, ("name", "target")),
    "autoscaling.v2.MetricTarget": Facts(
        {"type": enum("Utilization"), "averageUtilization": between(1, 100)},
        ("type", "averageUtilization"),
        ("value", "averageValue"),
    ),
    "autoscaling.v2.HPAScalingRules": Facts(
        {
            "policies": {"minItems": 1},
            "stabilizationWindowSeconds": COUNT,
            "selectPolicy": enum("Max", "Min", "Disabled"),
        },
        ("policies",),
        ("tolerance",),
    ),
    "autoscaling.v2.HPAScalingPolicy": Facts(
        {"type": enum("Pods", "Percent"), "value": between(1, 100), "periodSeconds": between(1, 1800)},
        ("type", "value", "periodSeconds"),
    ),
    # policy
    "policy.v1.PodDisruptionBudgetSpec": Facts(
        dict.fromkeys(("minAvailable", "maxUnavailable"), NUMBER_OR_PERCENT), one_of=("minAvailable", "maxUnavailable")
    ),
}
"""Facts by the name of the type: package, version and name."""


def _select_own_pods(obj: dict[str, Any]) -> None:
    """Give a workload the selector of its own pods."""
    template = obj["spec"]["template"]
    labels_of_pods = template["metadata"].get("labels") or {"app": "a"}
    template["metadata"]["labels"] = labels_of_pods
    obj["spec"]["selector"] = (
        dict(labels_of_pods) if obj["kind"] == "ReplicationController" else {"matchLabels": dict(labels_of_pods)}
    )


def _end_pods(obj: dict[str, Any]) -> None:
    """Let the pods of a job end."""
    job = obj["spec"]["jobTemplate"] if obj["kind"] == "CronJob" else obj
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never"


def _name_after_address(obj: dict[str, Any]) -> None:
    """Give an IPAddress an address as its name."""
    obj["metadata"]["name"] = f"10.1.1.{1 + len(obj['metadata']['name'])}"


TIES: Final[Mapping[str, Callable[[dict[str, Any]], None]]] = {
    **dict.fromkeys(
        ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController"), _select_own_pods
    ),
    **dict.fromkeys(("Job", "CronJob"), _end_pods),
    "IPAddress": _name_after_address,
}
"""Changes of drawn objects whose fields depend on each other, by kind."""

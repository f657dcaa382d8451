"""Findings of each kind of object, from dumps: the reason, words of the message, and evidence that is in the dump."""

from __future__ import annotations

from pathlib import Path

import pytest

from steersman.explain.finding import Severity
from tests.explain.dumps import every, explained

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: default, uid: u-{name}, labels: {{app: web}}, ownerReferences: {owners}}}
spec: {{nodeName: n1, containers: [{{name: app, image: a, ports: [{{name: http, containerPort: 80}}]}}]}}
status: {status}
---
"""
CRASHES = (
    "{phase: Running, conditions: [{type: Ready, status: 'False', reason: ContainersNotReady}], containerStatuses: "
    "[{name: app, ready: false, restartCount: 4, image: a, imageID: a, state: {waiting: {reason: CrashLoopBackOff}}, "
    "lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}]}"
)
READY = "{phase: Running, podIP: 10.0.0.1, conditions: [{type: Ready, status: 'True'}]}"
OF_SET = "[{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, uid: u-set, controller: true}]"
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default, uid: u-web, generation: 1}
spec: {replicas: 2, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}}, progressDeadlineSeconds: 600}
status:
  observedGeneration: 1
  replicas: 2
  conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: has timed out}]
---
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web-1
  namespace: default
  uid: u-set
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: u-web, controller: true}]
spec: {replicas: 2, selector: {matchLabels: {app: web}}}
status: {replicas: 2}
---
"""
QUOTA = """
apiVersion: v1
kind: ResourceQuota
metadata: {name: small, namespace: default}
spec: {hard: {pods: "2"}}
status: {hard: {pods: "2"}, used: {pods: "2"}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web, namespace: default, generation: 1}
spec: {replicas: 3, selector: {matchLabels: {app: web}}}
status:
  observedGeneration: 1
  replicas: 2
  conditions:
  - type: ReplicaFailure
    status: "True"
    reason: FailedCreate
    message: 'pods "web-x" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2'
---
"""
CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default, uid: u-data}
spec: {accessModes: [ReadWriteMany], storageClassName: fast, resources: {requests: {storage: 5Gi}}}
status: {phase: Pending}
---
"""
CLASS = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: %s
volumeBindingMode: %s
---
"""
VOLUME = """
apiVersion: v1
kind: PersistentVolume
metadata: {name: %s}
spec: {capacity: {storage: %s}, accessModes: [%s], storageClassName: %s}
status: {phase: Available}
---
"""
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {selector: {app: %s}, ports: [{port: 80, targetPort: %s}]}
---
"""
CRON = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: night, namespace: default, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {schedule: "%s", concurrencyPolicy: Forbid, suspend: %s}
status: {active: %s}
---
"""
WEBHOOK = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: guard}
webhooks:
- name: guard.example.com
  failurePolicy: %s
  clientConfig: {service: {namespace: default, name: guard}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
---
apiVersion: v1
kind: Namespace
metadata: {name: default}
---
"""
NODE = """
apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {unschedulable: true, taints: [{key: node.kubernetes.io/unreachable, effect: NoExecute}]}
status: {conditions: [{type: Ready, status: Unknown, reason: NodeStatusUnknown, message: Kubelet stopped posting node status.}]}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: n1, namespace: kube-node-lease}
spec: {renewTime: "2026-01-01T00:00:00.000000Z"}
---
apiVersion: v1
kind: Event
metadata: {name: e, namespace: default}
involvedObject: {kind: Node, name: other}
lastTimestamp: "2026-01-01T00:10:00Z"
---
"""
HPA = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: default}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 3
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
status:
  currentReplicas: 3
  desiredReplicas: 3
  currentMetrics: [{type: Resource, resource: {name: cpu, current: {averageUtilization: 90, averageValue: 90m}}}]
  conditions: [{type: ScalingLimited, status: "True", reason: TooManyReplicas, message: too many}]
---
"""
BUDGET = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: default, generation: 1}
spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}
status: {observedGeneration: 1, disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 2, expectedPods: %s}
---
"""
NAMESPACE = """
apiVersion: v1
kind: Namespace
metadata: {name: old, deletionTimestamp: "2026-01-01T00:00:00Z"}
spec: {finalizers: [kubernetes]}
status: {phase: Terminating}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: held, namespace: old, finalizers: [example.com/keep]}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.things.example.com}
spec: {group: things.example.com, version: v1, insecureSkipTLSVerify: true, service: {namespace: old, name: things}}
status: {conditions: [{type: Available, status: "False", reason: ServiceNotFound, message: not present}]}
---
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: once, namespace: default}
spec: {backoffLimit: 2}
status: {failed: 3, conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded, message: reached the limit}]}
---
"""
OTHERS = """
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: default}
spec: {ingressClassName: nginx, tls: [{secretName: cert}], defaultBackend: {service: {name: gone, port: {number: 80}}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.e.x}
spec: {group: e.x, names: {plural: ships, kind: Ship}, scope: Namespaced, versions: [{name: v1, served: true, storage: true}]}
status:
  conditions: [{type: NamesAccepted, status: "False", reason: PluralConflict, message: '"ships" is already in use'}]
  storedVersions: [v0]
  acceptedNames: {plural: "", kind: ""}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.e.x}
spec: {group: e.x, names: {plural: boats, kind: Ship}, scope: Namespaced, versions: [{name: v1, served: true, storage: true}]}
---
apiVersion: e.x/v1
kind: Boat
metadata: {name: one, namespace: default, generation: 3}
status:
  observedGeneration: 2
  conditions: [{type: Ready, status: "False", reason: Leaks, message: it takes water}, {type: Degraded, status: "False"}]
---
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: joe}
spec: {signerName: example.com/signer, request: "", usages: []}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: bot, namespace: default, uid: u-bot}
imagePullSecrets: [{name: gone}]
---
apiVersion: v1
kind: Secret
metadata:
  name: token
  namespace: default
  annotations: {kubernetes.io/service-account.name: bot, kubernetes.io/service-account.uid: u-old}
type: kubernetes.io/service-account-token
data: {token: aGlkZGVuLXZhbHVl}
---
apiVersion: v1
kind: Secret
metadata: {name: tls, namespace: default}
type: kubernetes.io/tls
data: {tls.crt: aGlkZGVuLXZhbHVl}
---
"""
STATEFUL = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: default, uid: u-db, generation: 1}
spec: {replicas: 2, serviceName: db, volumeClaimTemplates: [{metadata: {name: data}}]}
status: {observedGeneration: 1, replicas: 1, currentRevision: db-1, updateRevision: db-2}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data-db-0, namespace: default}
status: {phase: Pending}
---
"""
DAEMON = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: default, uid: u-agent, generation: 2}
spec: {template: {spec: {nodeSelector: {disk: ssd}, containers: []}}}
status: {observedGeneration: 1}
---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {disk: hdd}}
---
"""
OF_STATEFUL = "[{apiVersion: apps/v1, kind: StatefulSet, name: db, uid: u-db, controller: true}]"

READY_POD = POD.format(name="a", owners="[]", status=READY)
CRASHING_POD = POD.format(name="a", owners="[]", status=CRASHES)
CRASHING_DB = POD.format(name="db-0", owners=OF_STATEFUL, status=CRASHES)

CASES = [
    (
        "deploy/web",
        DEPLOYMENT + POD.format(name="web-1-a", owners=OF_SET, status=CRASHES),
        "CrashLoopBackOff",
        "137 (OOMKilled)",
    ),
    ("deploy/web", DEPLOYMENT, "ProgressDeadlineExceeded", "600 s"),
    ("rs/web", QUOTA, "QuotaExceeded", "exceeded quota"),
    ("rs/web", QUOTA, "QuotaUsedUp", "pods 2 of 2 used"),
    ("quota/small", QUOTA, "QuotaUsedUp", "2 of 2"),
    (
        "sts/db",
        STATEFUL + CRASHING_DB,
        "OrderedStart",
        "db-1 waits for db-0",
    ),
    (
        "sts/db",
        STATEFUL + CRASHING_DB,
        "OldRevisionBroken",
        "old revision",
    ),
    ("sts/db", STATEFUL, "ClaimNotBound", "data-db-0"),
    ("sts/db", STATEFUL, "ServiceMissing", "Service db"),
    ("ds/agent", DAEMON, "NoNodeSelected", "lacks only disk=ssd"),
    ("ds/agent", DAEMON, "NotObserved", "generation 2"),
    ("job/once", JOB, "BackoffLimitExceeded", "failed for good"),
    ("cj/night", CRON % ("0 3 * * *", "true", "[]"), "Suspended", "suspended"),
    ("cj/night", CRON % ("61 3 * * *", "false", "[]"), "InvalidSchedule", "cannot be used"),
    ("cj/night", CRON % ("0 3 * * *", "false", "[{name: night-1}]"), "ConcurrencyForbidden", "night-1"),
    ("pvc/data", CLAIM, "StorageClassMissing", "fast does not exist"),
    ("pvc/data", CLAIM + CLASS % ("csi.x", "WaitForFirstConsumer"), "NoConsumer", "no pod does"),
    ("pvc/data", CLAIM + CLASS % ("kubernetes.io/no-provisioner", "Immediate"), "NoProvisioner", "by hand"),
    (
        "pvc/data",
        CLAIM + VOLUME % ("p1", "1Gi", "ReadWriteMany", "fast") + VOLUME % ("p2", "9Gi", "ReadWriteOnce", "fast"),
        "NoMatchingVolume",
        "p1: too small (1Gi, requested 5Gi); p2: does not offer access mode ReadWriteMany",
    ),
    (
        "pvc/data",
        CLAIM + VOLUME % ("p1", "9Gi", "ReadWriteMany", "slow"),
        "NoMatchingVolume",
        "class slow instead of fast",
    ),
    ("pvc/data", CLAIM + VOLUME % ("p1", "9Gi", "ReadWriteMany", "fast"), "VolumeMatches", "p1"),
    (
        "svc/web",
        SERVICE % ("webb", "http") + READY_POD,
        "SelectorMatchesNothing",
        "app=web",
    ),
    (
        "svc/web",
        SERVICE % ("web", "htp") + READY_POD,
        "TargetPortMissing",
        "they have http",
    ),
    ("svc/web", SERVICE % ("web", "http") + CRASHING_POD, "NoReadyPod", "1 pods"),
    ("ing/web", OTHERS, "IngressClassMissing", "nginx"),
    ("ing/web", OTHERS, "ServiceMissing", "default/gone"),
    ("ing/web", OTHERS, "SecretMissing", "cert"),
    ("validatingwebhookconfiguration/guard", WEBHOOK % "Fail", "WebhookFails", "CREATE of pods is refused"),
    ("validatingwebhookconfiguration/guard", WEBHOOK % "Fail", "WebhookDeadlock", "cannot recover"),
    ("validatingwebhookconfiguration/guard", WEBHOOK % "Ignore", "WebhookSkipped", "failurePolicy Ignore"),
    ("apiservice/v1.things.example.com", NAMESPACE, "ServiceNotFound", "no namespace can be deleted"),
    ("ns/old", NAMESPACE, "ContentRemaining", "example.com/keep (1)"),
    ("ns/old", NAMESPACE, "APIServiceUnavailable", "v1.things.example.com"),
    ("crd/ships.e.x", OTHERS, "PluralConflict", "already in use"),
    ("crd/ships.e.x", OTHERS, "NamesConflict", "boats.e.x has the names Ship"),
    ("crd/ships.e.x", OTHERS, "StoredVersionGone", "v0"),
    ("boat/one", OTHERS, "ConditionFault", "Ready is False: it takes water"),
    ("boat/one", OTHERS, "NotObserved", "generation 3"),
    ("hpa/web", HPA, "TargetMissing", "Deployment/web"),
    ("hpa/web", HPA, "AtMaximum", "maxReplicas 3"),
    ("hpa/web", HPA, "MetricValue", "90% of 50%, ratio 1.80, outside of the tolerance"),
    (
        "pdb/web",
        BUDGET % 2 + CRASHING_POD,
        "NeverAllows",
        "2 of 2 pods must be healthy",
    ),
    ("pdb/web", BUDGET % 3 + CRASHING_POD, "NoneAllowed", "2 must stay so"),
    ("pdb/web", BUDGET % 0, "SelectsNothing", "no pod"),
    ("node/n1", NODE, "NodeStatusUnknown", "stopped reporting"),
    ("node/n1", NODE, "HeartbeatLost", "10m ago"),
    ("node/n1", NODE, "Unschedulable", "cordoned"),
    ("csr/joe", OTHERS, "NotApproved", "nobody has approved it"),
    ("sa/bot", OTHERS, "SecretMissing", "gone"),
    ("secret/token", OTHERS, "AccountReplaced", "earlier ServiceAccount bot"),
    ("secret/tls", OTHERS, "KeysMissing", "tls.key"),
]


@pytest.mark.parametrize(
    ("what", "text", "reason", "words"), CASES, ids=[f"{case[0]}-{case[2]}-{n}" for n, case in enumerate(CASES)]
)
async def test_the_cause_is_found_with_evidence(tmp_path: Path, what: str, text: str, reason: str, words: str) -> None:
    kind, _, name = what.partition("/")
    found = await explained(tmp_path, text, kind, name)
    matching = [each for each in every(found.findings) if each.reason == reason and words in each.message]
    assert matching, [(each.reason, each.message) for each in every(found.findings)]
    assert all(each.evidence for each in matching)
    assert all(each.severity is not Severity.UNKNOWN for each in every(found.findings))


async def test_values_of_secrets_are_not_shown(tmp_path: Path) -> None:
    for name in ("token", "tls"):
        found = await explained(tmp_path, OTHERS, "secret", name)
        assert "hidden" not in repr(found)
        assert "aGlkZGVu" not in repr(found)


async def test_finalizers_name_the_pods_that_use_a_claim(tmp_path: Path) -> None:
    claim = CLAIM.replace(
        "uid: u-data", 'deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [kubernetes.io/pvc-protection]'
    )
    pod = POD.format(name="user", owners="[]", status=READY).replace(
        "spec: {", "spec: {volumes: [{name: d, persistentVolumeClaim: {claimName: data}}], "
    )
    found = await explained(tmp_path, claim + pod, "pvc", "data")
    finalizer = next(each for each in found.findings if each.reason == "Finalizer")
    assert [each.message for each in finalizer.because] == ["pod/user uses it"]


async def test_a_healthy_deployment_has_no_faults(tmp_path: Path) -> None:
    text = DEPLOYMENT.replace(
        'status: "False", reason: ProgressDeadlineExceeded', 'status: "True", reason: NewReplicaSetAvailable'
    )
    pods = "".join(POD.format(name=f"web-1-{each}", owners=OF_SET, status=READY) for each in "ab")
    found = await explained(tmp_path, text + pods, "deploy", "web")
    assert [each for each in found.findings if each.severity is not Severity.NOTE] == []

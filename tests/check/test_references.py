"""References that lead nowhere."""

from __future__ import annotations

import time
from pathlib import Path

from steersman.check.references import dangling_references
from tests.check.manifests import DEPLOYMENT, documents


def told(folder: Path, *texts: str) -> list[tuple[str, str]]:
    return [(field, message) for _, field, message in dangling_references(documents(folder, *texts), (), "default")]


POD = """
apiVersion: v1
kind: Pod
metadata: {name: a, labels: {app: a}}
spec:
  serviceAccountName: robot
  imagePullSecrets: [{name: pull}]
  volumes:
  - {name: a, configMap: {name: settings}}
  - {name: b, secret: {secretName: keys, optional: true}}
  - {name: c, persistentVolumeClaim: {claimName: data}}
  - {name: d, projected: {sources: [{secret: {name: more}}]}}
  containers:
  - name: a
    image: b
    ports: [{name: http, containerPort: 80}]
    envFrom: [{configMapRef: {name: settings}}]
    env: [{name: A, valueFrom: {secretKeyRef: {name: keys, key: a}}}]
"""
OTHERS = """
apiVersion: v1
kind: Service
metadata: {name: a}
spec: {selector: {app: a}, ports: [{port: 80, targetPort: http}, {port: 81, targetPort: https}]}
---
apiVersion: v1
kind: Service
metadata: {name: b}
spec: {selector: {app: b}, ports: [{port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: a}
spec:
  ingressClassName: nginx
  defaultBackend: {service: {name: a, port: {number: 82}}}
  rules: [{http: {paths: [{backend: {service: {name: gone, port: {number: 80}}}}]}}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: a}
spec: {selector: {matchLabels: {app: c}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: a}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: a}
roleRef: {kind: ClusterRole, name: reader}
subjects: [{kind: ServiceAccount, name: default, namespace: x}, {kind: ServiceAccount, name: robot, namespace: x}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: a}
webhooks: [{name: a, clientConfig: {service: {name: hook, namespace: x}}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: a}
spec: {policyName: rule}
"""


def test_references_of_pods(tmp_path: Path) -> None:
    assert told(tmp_path, POD) == [
        ("spec.serviceAccountName", 'ServiceAccount "robot" is not among the documents'),
        ("spec.imagePullSecrets[0].name", 'Secret "pull" is not among the documents'),
        ("spec.volumes[0].configMap.name", 'ConfigMap "settings" is not among the documents'),
        ("spec.volumes[2].persistentVolumeClaim.claimName", 'PersistentVolumeClaim "data" is not among the documents'),
        ("spec.volumes[3].projected.sources[0].secret.name", 'Secret "more" is not among the documents'),
        ("spec.containers[0].envFrom[0].configMapRef.name", 'ConfigMap "settings" is not among the documents'),
        ("spec.containers[0].env[0].valueFrom.secretKeyRef.name", 'Secret "keys" is not among the documents'),
    ]


def test_references_of_other_objects(tmp_path: Path) -> None:
    assert told(tmp_path, POD, OTHERS)[7:] == [
        ("spec.ports[1].targetPort", 'no container of the pods has a port "https"'),
        ("spec.selector", "no pods among the documents have the labels app=b"),
        ("spec.ingressClassName", 'IngressClass "nginx" is not among the documents'),
        ("spec.rules[0].http.paths[0].backend.service.name", 'Service "gone" is not among the documents'),
        ("spec.defaultBackend.service.port.number", 'Service "a" has no port 82'),
        ("spec.selector.matchLabels", "no pods among the documents have the labels app=c"),
        ("spec.scaleTargetRef.name", 'Deployment "web" is not among the documents'),
        ("roleRef.name", 'ClusterRole "reader" is not among the documents'),
        ("subjects[1].name", 'ServiceAccount "robot" in namespace x is not among the documents'),
        ("webhooks[0].clientConfig.service.name", 'Service "hook" in namespace x is not among the documents'),
        ("spec.policyName", 'ValidatingAdmissionPolicy "rule" is not among the documents'),
    ]


def test_objects_of_any_document_are_found_in_their_namespaces(tmp_path: Path) -> None:
    settings = "\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
    pod = POD[: POD.index("  serviceAccountName")] + "  volumes: [{name: a, configMap: {name: settings}}]\n"
    assert told(tmp_path, settings, pod) == []
    elsewhere = settings.replace("{name: settings}", "{name: settings, namespace: other}")
    assert told(tmp_path, elsewhere, pod) == [
        ("spec.volumes[0].configMap.name", 'ConfigMap "settings" is not among the documents')
    ]


def test_a_service_alone_is_not_blamed_for_pods_elsewhere(tmp_path: Path) -> None:
    service = OTHERS[: OTHERS.index("---")]
    assert told(tmp_path, service) == []
    assert told(tmp_path, service, DEPLOYMENT) == []


def test_selectors_take_time_in_proportion_to_documents(tmp_path: Path) -> None:
    def seconds(number: int) -> float:
        texts = []
        for each in range(number):
            labels = f"{{app: a{each}, all: same}}"
            texts.append(f"\napiVersion: v1\nkind: Pod\nmetadata: {{name: a{each}, labels: {labels}}}\n")
            spec = f"{{selector: {{app: a{each + 1}, all: same}}, ports: [{{targetPort: x}}]}}"
            texts.append(f"\napiVersion: v1\nkind: Service\nmetadata: {{name: a{each}}}\nspec: {spec}\n")
        found = documents(tmp_path, *texts)
        begin = time.process_time()
        told = list(dangling_references(found, (), "default"))
        assert len(told) == number
        return time.process_time() - begin

    seconds(10)
    assert seconds(2_000) < 16 * max(seconds(500), 0.005)


def test_documents_of_any_shape_are_read(tmp_path: Path) -> None:
    shapes = ("3", "[3]", "{a: 3}", "[[]]", "[{}]", "null", "text")
    kinds = (
        "v1/Pod",
        "apps/v1/StatefulSet",
        "networking.k8s.io/v1/Ingress",
        "rbac.authorization.k8s.io/v1/RoleBinding",
    )
    texts = []
    for each in kinds:
        version, _, kind = each.rpartition("/")
        for shape in shapes:
            for field in ("spec", "subjects", "roleRef", "webhooks", "metadata"):
                texts.append(f"\napiVersion: {version}\nkind: {kind}\n{field}: {shape}\n")
            for field in ("containers", "volumes", "template", "rules", "tls", "defaultBackend", "imagePullSecrets"):
                texts.append(f"\napiVersion: {version}\nkind: {kind}\nspec: {{{field}: {shape}}}\n")
    assert told(tmp_path, *texts) == []

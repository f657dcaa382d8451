"""An operator with kopf: a Backup is made by a Job that copies a volume, and tells how far it is.

`kopf run -m examples.backups.operator --all-namespaces` runs it on the cluster that kubectl talks to.
"""

from __future__ import annotations

import os
from typing import Any

import kopf
from kubernetes import client, config

BACKUPS = ("example.com", "v1", "backups")
OWNER = "example.com/backup"


@kopf.on.login()
def log_in(**arguments: Any) -> kopf.ConnectionInfo | None:
    """Kopf itself talks to the cluster of $KUBECONFIG, by default kubectl's."""
    return kopf.login_with_kubeconfig(**arguments)


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    """So do the handlers; no events are posted."""
    config.load_kube_config(os.environ.get("KUBECONFIG"))
    settings.posting.enabled = False


@kopf.on.create(*BACKUPS)
def begin(name: str, namespace: str | None, spec: kopf.Spec, patch: kopf.Patch, **_: Any) -> None:
    """Makes the Job of a new Backup, which owns it."""
    job = job_of(name, spec["image"], spec["volume"])
    kopf.adopt(job)
    client.BatchV1Api().create_namespaced_job(namespace, job)
    patch.status.update({"phase": "Running", "job": name})


@kopf.on.event("batch", "v1", "jobs", labels={OWNER: kopf.PRESENT})
def follow(labels: kopf.Labels, namespace: str | None, status: kopf.Status, **_: Any) -> None:
    """Tells in the Backup what became of its Job."""
    if phase := phase_of(status.get("conditions", ())):
        group, version, plural = BACKUPS
        client.CustomObjectsApi().patch_namespaced_custom_object_status(
            group, version, namespace, plural, labels[OWNER], {"status": {"phase": phase}}
        )


def job_of(name: str, image: str, volume: str) -> dict[str, Any]:
    """The Job that copies a volume."""
    container = {
        "name": "copy",
        "image": image,
        "args": ["/data"],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    pod = {
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": volume, "readOnly": True}}],
    }
    return {"metadata": {"name": name, "labels": {OWNER: name}}, "spec": {"backoffLimit": 2, "template": {"spec": pod}}}


def phase_of(conditions: Any) -> str:
    """Return the phase of a Backup for the conditions of its Job; "" while the Job goes on."""
    true = {each["type"] for each in conditions if each["status"] == "True"}
    return "Done" if "Complete" in true else "Failed" if "Failed" in true else ""

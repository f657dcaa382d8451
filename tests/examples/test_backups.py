"""Tests of the operator of examples/backups, on a server of the pytest plugin. They act as the Job controller."""

from __future__ import annotations

import gc
import os
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from steersman.testing import ThreadedEnvironment
from tests import ROOT

pytest.importorskip("kopf", reason="kopf is not installed")
pytest.importorskip("kubernetes", reason="the client is not installed")

FOLDER = ROOT / "examples" / "backups"
NOW = "2026-01-01T00:00:00Z"
PATIENCE = 30.0
_NUMBERS = count(1)


@pytest.fixture(scope="module")
def operator(steersman_session: ThreadedEnvironment) -> Iterator[ThreadedEnvironment]:
    """Yield the server, with the operator in a thread, started as users start it."""
    from kopf.testing import KopfRunner

    steersman_session.apply_definitions(FOLDER / "crds")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", os.fspath(steersman_session.kubeconfig()))
        arguments = ["run", "--standalone", "--all-namespaces", str(FOLDER / "operator.py")]
        with KopfRunner(arguments, timeout=PATIENCE) as runner:
            yield steersman_session
        assert runner.exit_code == 0, runner.output
    del runner
    with warnings.catch_warnings():  # aiohttp leaves connections of TLS closing when its loop ends
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


class Backups:
    """Backups and Jobs of a namespace."""

    def __init__(self, api: Any, namespace: str) -> None:
        from kubernetes.client import BatchV1Api, CustomObjectsApi

        self.namespace = namespace
        self.jobs = BatchV1Api(api)
        self._backups = CustomObjectsApi(api)
        self._where = {"group": "example.com", "version": "v1", "namespace": namespace, "plural": "backups"}

    def create(self, name: str, **spec: Any) -> None:
        body = {"apiVersion": "example.com/v1", "kind": "Backup", "metadata": {"name": name}, "spec": spec}
        self._backups.create_namespaced_custom_object(**self._where, body=body)

    def status(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self._backups.get_namespaced_custom_object(**self._where, name=name)
        status: dict[str, Any] = found.get("status", {})
        return status

    def job_ends(self, name: str, *, succeeded: bool) -> None:
        """Write the status of a finished Job, as the Job controller does."""
        early, last = ("SuccessCriteriaMet", "Complete") if succeeded else ("FailureTarget", "Failed")
        conditions = [
            {"type": each, "status": "True", "lastProbeTime": NOW, "lastTransitionTime": NOW} for each in (early, last)
        ]
        status: dict[str, Any] = {"startTime": NOW, "uncountedTerminatedPods": {}}
        status |= {"succeeded": 1, "completionTime": NOW} if succeeded else {"failed": 1}
        self.jobs.patch_namespaced_job_status(name, self.namespace, {"status": {**status, "conditions": conditions}})


@pytest.fixture
def backups(operator: ThreadedEnvironment) -> Iterator[Backups]:
    """Yield the backups of a fresh namespace."""
    from kubernetes.client import CoreV1Api

    with operator.kubernetes() as api:
        namespace = f"backups-{next(_NUMBERS)}"
        CoreV1Api(api).create_namespace({"metadata": {"name": namespace}})
        yield Backups(api, namespace)


def eventually(look: Callable[[], bool]) -> None:
    """Wait until `look` returns True."""
    until = time.monotonic() + PATIENCE
    while not look():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_backup_has_a_job_that_it_owns(backups: Backups) -> None:
    backups.create("nightly", volume="data")
    eventually(lambda: backups.status("nightly").get("phase") == "Running")
    (job,) = backups.jobs.list_namespaced_job(backups.namespace).items
    (owner,) = job.metadata.owner_references
    assert (owner.kind, owner.name) == ("Backup", "nightly")
    (volume,) = job.spec.template.spec.volumes
    assert volume.persistent_volume_claim.claim_name == "data"
    assert job.spec.template.spec.containers[0].image == "registry.example/copy:1"


@pytest.mark.parametrize(("succeeded", "phase"), [(True, "Done"), (False, "Failed")])
def test_a_backup_tells_what_became_of_its_job(backups: Backups, succeeded: bool, phase: str) -> None:
    backups.create("nightly", volume="data")
    eventually(lambda: "job" in backups.status("nightly"))
    backups.job_ends("nightly", succeeded=succeeded)
    eventually(lambda: backups.status("nightly")["phase"] == phase)

"""Probing of running containers: startup, readiness and liveness (pkg/kubelet `prober`)."""

from __future__ import annotations

from steersman.api.core.v1 import Container, Probe
from steersman.nodes.container import probes
from steersman.nodes.container.ending import begin_termination
from steersman.nodes.container.sync import ContainerSync
from steersman.nodes.container_status import is_of_other_kubelet
from steersman.nodes.context import LIVENESS, READINESS, STARTUP, ProbeState, Termination


def run_probes(one: ContainerSync, started: float) -> Termination | None:
    """Run the due probes of a running container and set its `started` and `ready`.

    Returns its termination if a startup or liveness probe has failed too often.
    """
    container, status = one.container, one.status
    if container.startup_probe is None:
        status.started = True
    is_ready = True
    for kind in probes.KINDS:
        probe = probes.probe_of(container, kind)
        if probe is None or (kind == STARTUP) == bool(status.started):
            continue
        probe_states, failed = _probe_state(one, kind, probe, started)
        if failed and kind != READINESS:
            return _termination_by_probe(one, kind, probe)
        if kind == STARTUP:
            status.started = probe_states.succeeded
        elif kind == READINESS:
            is_ready = probe_states.succeeded
    status.ready = bool(status.started) and is_ready and one.sync.is_due(started + one.behaves.ready_after)
    return None


def _termination_by_probe(one: ContainerSync, kind: str, probe: Probe) -> Termination:
    container, sync = one.container, one.sync
    own = probe.termination_grace_period_seconds
    grace = float(own if own is not None else sync.pod.spec.termination_grace_period_seconds or 0)
    text = f"Container {container.name} failed {'liveness' if kind == LIVENESS else 'startup'} probe"
    policy = (container.restart_policy if isinstance(container, Container) else None) or sync.pod.spec.restart_policy
    if policy != "Never":
        text = f"{text}, will be restarted"
    return begin_termination(one, Termination(one.status.container_id, sync.now, grace, by_probe=True), text)


def _probe_state(one: ContainerSync, kind: str, probe: Probe, started: float) -> tuple[ProbeState, bool]:
    """Return the state of a probe after a due attempt, and True if it has failed as often as its threshold."""
    sync, remembered = one.sync, one.record.probe_states
    probe_states = probes.state_in_run(remembered.get(kind), one.status, kind)
    number = probes.attempt_at(probe, started, sync.now)
    if number < 0:
        sync.resync_at(probes.time_at(probe, started, 0))
        return probe_states, False
    fails_at = one.behaves.fails_after.get(kind)
    fails_at = None if fails_at is None else started + fails_at
    if number > probe_states.number:
        found = _due_result(one, kind, probe, fails_at)
        if found is None:
            sync.resync_at(sync.now)
            return probe_states, False
        probe_states = probes.state_after(probe, probe_states, number, succeeded=found.succeeded)
        if not found.succeeded:
            one.record_event("Warning", "Unhealthy", f"{kind} probe failed: {found.output}")
    if probe_states.last and probe_states.succeeded and not _is_run(one, probe):  # only an annotation changes it
        kept = {name: each for name, each in remembered.items() if name != kind}
        if fails_at is not None:
            sync.resync_at(probes.first_from(probe, started, max(fails_at, sync.now + 0.001)))
    else:
        kept = {**remembered, kind: probe_states}
        sync.resync_at(probes.time_at(probe, started, number + 1))
    one.update_record(probe_states=kept)
    return probe_states, probes.has_failed(probe, probe_states)


def _is_run(one: ContainerSync, probe: Probe) -> bool:
    """Return True if the probe's command is run."""
    return probes.is_run(probe.exec) and not is_of_other_kubelet(one.sync.pod, one.status)


def _due_result(one: ContainerSync, kind: str, probe: Probe, fails_at: float | None) -> probes.ProbeResult | None:
    """Return the result of the due attempt of a probe; None while its command still has to be run."""
    sync = one.sync
    if fails_at is not None and fails_at <= sync.now:
        return probes.ProbeResult(succeeded=False, output=probes.simulated_failure(probe, sync.pod_status.pod_ip))
    if not _is_run(one, probe):
        return probes.ProbeResult(succeeded=True)
    ran = one.result_of(kind, one.status.container_id)
    return None if ran is None else probes.result_of_command(probe, ran)

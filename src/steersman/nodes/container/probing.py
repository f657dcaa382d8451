"""Probing of running containers: startup, readiness and liveness (pkg/kubelet `prober`)."""

from __future__ import annotations

from steersman.api.core.v1 import Container, Probe
from steersman.nodes.container import probes
from steersman.nodes.container.ending import stopped
from steersman.nodes.container.look import ContainerLook
from steersman.nodes.place import LIVENESS, READINESS, STARTUP, Stop, Ticks


def looked_after(one: ContainerLook, started: float) -> Stop | None:
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
        ticks, failed = _look(one, kind, probe, started)
        if failed and kind != READINESS:
            return _failed(one, kind, probe)
        if kind == STARTUP:
            status.started = ticks.good
        elif kind == READINESS:
            is_ready = ticks.good
    status.ready = bool(status.started) and is_ready and one.look.has_passed(started + one.behaves.ready_after)
    return None


def _failed(one: ContainerLook, kind: str, probe: Probe) -> Stop:
    container, look = one.container, one.look
    own = probe.termination_grace_period_seconds
    grace = float(own if own is not None else look.pod.spec.termination_grace_period_seconds or 0)
    text = f"Container {container.name} failed {'liveness' if kind == LIVENESS else 'startup'} probe"
    policy = (container.restart_policy if isinstance(container, Container) else None) or look.pod.spec.restart_policy
    if policy != "Never":
        text = f"{text}, will be restarted"
    return stopped(one, Stop(one.status.container_id, look.now, grace, by_probe=True), text)


def _look(one: ContainerLook, kind: str, probe: Probe, started: float) -> tuple[Ticks, bool]:
    """Return the state of a probe after a due attempt, and True if it has failed as often as its threshold."""
    look, remembered = one.look, one.memory.ticks
    ticks = probes.known(remembered.get(kind), one.status, kind)
    number = probes.number_at(probe, started, look.now)
    if number < 0:
        look.again_at(probes.time_at(probe, started, 0))
        return ticks, False
    fails_at = one.behaves.fails_after.get(kind)
    fails_at = None if fails_at is None else started + fails_at
    if number > ticks.number:
        found = _found(one, kind, probe, fails_at)
        if found is None:
            look.again_at(look.now)
            return ticks, False
        ticks = probes.looked(probe, ticks, number, good=found.good)
        if not found.good:
            one.tell("Warning", "Unhealthy", f"{kind} probe failed: {found.output}")
    if ticks.last and ticks.good and not probes.is_run(probe.exec):  # changes only when an annotation says so
        kept = {name: each for name, each in remembered.items() if name != kind}
        if fails_at is not None:
            look.again_at(probes.first_from(probe, started, max(fails_at, look.now + 0.001)))
    else:
        kept = {**remembered, kind: ticks}
        look.again_at(probes.time_at(probe, started, number + 1))
    one.remember(ticks=kept)
    return ticks, probes.has_failed(probe, ticks)


def _found(one: ContainerLook, kind: str, probe: Probe, fails_at: float | None) -> probes.Found | None:
    """Return the result of the due attempt of a probe; None while its command still has to be run."""
    look = one.look
    if fails_at is not None and fails_at <= look.now:
        return probes.Found(good=False, output=probes.said_to_fail(probe, look.pod_status.pod_ip))
    if not probes.is_run(probe.exec):
        return probes.Found(good=True)
    ran = one.ran(kind, one.status.container_id)
    return None if ran is None else probes.found_by_command(probe, ran)

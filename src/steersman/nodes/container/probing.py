"""Running containers are looked after: whether they have started, are ready, have to end (pkg/kubelet `prober`)."""

from __future__ import annotations

from steersman.api.core.v1 import (
    Container,
    ContainerStatus,
    Probe,
)
from steersman.nodes.behaviour import Behaviour
from steersman.nodes.container import probes
from steersman.nodes.container.ending import stopped
from steersman.nodes.container.look import Look
from steersman.nodes.container_status import AnyContainer
from steersman.nodes.place import LIVENESS, READINESS, STARTUP, Happened, Stop, Ticks


def looked_after(
    look: Look, container: AnyContainer, status: ContainerStatus, behaves: Behaviour, started: float, path: str
) -> Stop | None:
    """Whether a running container has started and is ready; that it is told to end if a probe wants it."""
    if container.startup_probe is None:
        status.started = True
    is_ready = True
    for kind in probes.KINDS:
        if probes.probe_of(container, kind) is None or (kind == STARTUP) == bool(status.started):
            continue
        ticks, failed = _look(look, kind, container, status, behaves, started, path)
        if failed and kind != READINESS:
            return _failed_probe(look, kind, container, status, path)
        if kind == STARTUP:
            status.started = ticks.good
        elif kind == READINESS:
            is_ready = ticks.good
    status.ready = bool(status.started) and is_ready and look.has_passed(started + behaves.ready_after)
    return None


def _failed_probe(look: Look, kind: str, container: AnyContainer, status: ContainerStatus, path: str) -> Stop:
    probe = probes.probe_of(container, kind)
    own = None if probe is None else probe.termination_grace_period_seconds
    grace = float(own if own is not None else look.pod.spec.termination_grace_period_seconds or 0)
    text = f"Container {container.name} failed {'liveness' if kind == LIVENESS else 'startup'} probe"
    policy = (container.restart_policy if isinstance(container, Container) else None) or look.pod.spec.restart_policy
    if policy != "Never":
        text = f"{text}, will be restarted"
    return stopped(look, container, Stop(status.container_id, look.now, grace, by_probe=True), text, path)


def _look(
    look: Look,
    kind: str,
    container: AnyContainer,
    status: ContainerStatus,
    behaves: Behaviour,
    started: float,
    path: str,
) -> tuple[Ticks, bool]:
    """What is known of a probe by now, and whether it has failed as often as it may."""
    probe = probes.probe_of(container, kind)
    assert probe is not None
    remembered = look.remembered(container).ticks
    ticks = probes.known(remembered.get(kind), status, kind)
    number = probes.number_at(probe, started, look.now)
    if number < 0:
        look.again_at(probes.time_at(probe, started, 0))
        return ticks, False
    fails_at = behaves.fails_after.get(kind)
    fails_at = None if fails_at is None else started + fails_at
    if number > ticks.number:
        found = _found(look, kind, container, status, probe, fails_at)
        if found is None:
            look.again_at(look.now)
            return ticks, False
        ticks = probes.looked(probe, ticks, number, good=found.good)
        if not found.good:
            text = f"{kind} probe failed: {found.output}"
            look.happened.append(Happened("Warning", "Unhealthy", text, path))
    if ticks.last and ticks.good and not probes.is_run(probe.exec):  # nothing changes before it is said to fail
        kept = {name: each for name, each in remembered.items() if name != kind}
        if fails_at is not None:
            look.again_at(probes.first_from(probe, started, max(fails_at, look.now + 0.001)))
    else:
        kept = {**remembered, kind: ticks}
        look.again_at(probes.time_at(probe, started, number + 1))
    look.remember(container, ticks=kept)
    return ticks, probes.has_failed(probe, ticks)


def _found(
    look: Look, kind: str, container: AnyContainer, status: ContainerStatus, probe: Probe, fails_at: float | None
) -> probes.Found | None:
    """What a probe finds now; None while its command is to be run."""
    if fails_at is not None and fails_at <= look.now:
        return probes.Found(good=False, output=probes.said_to_fail(probe, look.pod_status.pod_ip))
    if not probes.is_run(probe.exec):
        return probes.Found(good=True)
    ran = look.ran(container, kind, status.container_id)
    return None if ran is None else probes.found_by_command(probe, ran)

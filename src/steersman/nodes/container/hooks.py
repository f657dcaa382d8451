"""Lifecycle hooks of containers, after their start and before their end (pkg/kubelet/lifecycle).

A command whose program the simulated shell knows is run. Other commands, and HTTP requests, succeed at once.
"""

from __future__ import annotations

from steersman.api.core.v1 import LifecycleHandler, Pod
from steersman.machinery.built_in.pod_resources import AnyContainer
from steersman.machinery.errors.field import quote
from steersman.nodes.container.sync import full_name
from steersman.nodes.context import CommandResult


def seconds_of(hook: LifecycleHandler | None, ran: CommandResult | None) -> float | None:
    """Return the seconds that a hook takes; None while its command has not been run."""
    if hook is None:
        return 0.0
    if hook.sleep is not None:
        return float(max(hook.sleep.seconds, 0))
    if hook.exec is None:
        return 0.0
    return None if ran is None else ran.seconds


def failed(pod: Pod, container: AnyContainer, hook: LifecycleHandler | None, ran: CommandResult) -> str:
    """Return the kubelet's message for a container whose hook has failed."""
    words = hook.exec.command if hook is not None and hook.exec is not None else []
    command = " ".join(words)
    return (
        f'Exec lifecycle hook ([{command}]) for Container "{container.name}" in Pod "{full_name(pod)}" failed - error: '
        f"command '{command}' exited with {ran.exit_code}: {ran.errors}, message: {quote(ran.output)}"
    )

"""Processes that `ps` shows in a simulated container: its own command, and those of containers that share processes."""

from __future__ import annotations

from typing import Final

from steersman.api.core.v1 import EphemeralContainer, Pod
from steersman.machinery.built_in.pod_resources import AnyContainer, all_containers
from steersman.nodes.container_status import MOST_IMAGE, all_statuses
from steersman.nodes.initial_world import identity_of, unexpanded_command_of
from steersman.nodes.shell.effects import Process

_STEP: Final = 7
"""Distance between two process IDs."""
_MOST_COMMAND: Final = 1024
_MOST: Final = 100


def processes_of(pod: Pod, container: AnyContainer) -> tuple[Process, ...]:
    """Return the processes that a container sees.

    An ephemeral container sees the process of its target. In a pod that shares its process namespace, each container
    sees all processes.
    """
    running = {each.name for each in all_statuses(pod.status) if each.state.running is not None}
    shown: list[AnyContainer] = []
    processes: list[Process] = []
    if pod.spec.share_process_namespace:
        processes.append(Process(1, "/pause", 65535))
        shown = [each for each in all_containers(pod.spec) if each.name in running and each.name != container.name]
    elif isinstance(container, EphemeralContainer) and container.target_container_name:
        shown = [each for each in all_containers(pod.spec) if each.name == container.target_container_name]
    for each in (*shown[:_MOST], container):
        number = 1 + _STEP * len(processes)
        processes.append(Process(number, _command(each), identity_of(pod, each).user))
    return tuple(processes)


def _command(container: AnyContainer) -> str:
    """Return the command of a container, or the name of its image if the image determines the command."""
    words = unexpanded_command_of(container)
    image = container.image[:MOST_IMAGE].rpartition("/")[2].partition("@")[0].partition(":")[0]
    return (" ".join(words) or image)[:_MOST_COMMAND]

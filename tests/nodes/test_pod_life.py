"""Life of pods on a simulated node."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.api.core.v1 import (
    Container,
    ContainerResizePolicy,
    ContainerRestartRule,
    ContainerRestartRuleOnExitCodes,
    EnvVar,
    EphemeralContainer,
    Pod,
    PodDNSConfig,
    PodReadinessGate,
    PodSecurityContext,
    PodSpec,
    PodStatus,
    Probe,
    ResourceRequirements,
    SecurityContext,
    VolumeMount,
)
from steersman.api.meta.v1 import ObjectMeta, OwnerReference
from steersman.machinery.built_in.pod_resources import pod_requests
from steersman.machinery.values import times
from steersman.machinery.values.quantity import Quantity
from steersman.nodes.behaviour import PREFIX
from steersman.nodes.container_status import image_name
from steersman.nodes.context import ContainerExit, PodContext
from steersman.nodes.images import Pulls
from steersman.nodes.pod_life import PodSyncResult, sync_pod, takes_long
from steersman.nodes.resize import NodeCapacity
from steersman.scheduler.demand.requests import used_by

CONTEXT = PodContext(("172.16.0.2",), ("10.128.0.2",))
NOW = 1_800_000_000.0


def pod(*containers: Container, restart: str = "Always", init: tuple[Container, ...] = (), **spec: Any) -> Pod:
    return Pod(
        metadata=ObjectMeta(name="p", namespace="n", uid="u", generation=1),
        spec=PodSpec(
            containers=list(containers),
            init_containers=list(init),
            restart_policy=restart,
            termination_grace_period_seconds=30,
            **spec,
        ),
        status=PodStatus(phase="Pending"),
    )


def container(name: str = "c", *command: str, **more: Any) -> Container:
    return Container(name=name, image="nginx", command=list(command), **more)


def sync(it: Pod, now: float) -> PodSyncResult:
    """Sync a pod once and store the resulting status in it."""
    done = sync_pod(it, CONTEXT, now)
    it.status = done.status
    return done


def delete(it: Pod, now: float, grace: int = 30) -> None:
    it.metadata.deletion_timestamp = times.format_time(times.parse("2027-01-15T08:00:00Z"))
    it.metadata.deletion_grace_period_seconds = grace
    assert times.unix(it.metadata.deletion_timestamp) >= now


def ready(it: Pod) -> tuple[str, str, str]:
    found = next(each for each in it.status.conditions if each.type == "Ready")
    return found.status, found.reason, found.message


def test_a_server_runs_at_once_and_stays() -> None:
    it = pod(container())
    done = sync(it, NOW)
    assert it.status.phase == "Running"
    assert ready(it) == ("True", "", "")
    assert (it.status.pod_ip, it.status.host_ip) == ("10.128.0.2", "172.16.0.2")
    assert [each.reason for each in done.events] == ["Pulling", "Pulled", "Created", "Started"]
    assert not sync(it, NOW + 1000).changed


def test_a_command_that_ends_succeeds_or_fails_where_nothing_is_started_again() -> None:
    it = pod(container("c", "sh", "-c", "echo hello; sleep 5"), restart="Never")
    done = sync(it, NOW)
    assert (it.status.phase, done.next_sync) == ("Running", NOW + 5)
    sync(it, NOW + 5)
    assert it.status.phase == "Succeeded"
    assert ready(it) == ("False", "PodCompleted", "")
    it = pod(container("c", "false"), restart="Never")
    sync(it, NOW)
    assert it.status.phase == "Failed"
    terminated = it.status.container_statuses[0].state.terminated
    assert terminated is not None
    assert (terminated.exit_code, terminated.reason) == (1, "Error")


def test_what_fails_is_started_again_with_growing_waits() -> None:
    it = pod(container("c", "sh", "-c", "sleep 1; exit 3"))
    at, waiting_reason = NOW, []
    for _ in range(5):
        sync(it, at)
        at += 1
        done = sync(it, at)
        waiting_reason.append(0 if it.status.container_statuses[0].state.running else (done.next_sync or 0) - at)
        if waiting_reason[-1]:
            waiting = it.status.container_statuses[0].state.waiting
            assert waiting is not None
            assert waiting.reason == "CrashLoopBackOff"
            assert ready(it) == ("False", "ContainersNotReady", "containers with unready status: [c]")
            at += waiting_reason[-1]
    assert waiting_reason == [0, 10, 20, 40, 80]
    assert it.status.phase == "Running"
    assert it.status.container_statuses[0].restart_count == 4


def test_init_containers_run_in_order_and_sidecars_stay() -> None:
    it = pod(
        container(),
        init=(container("first", "sleep", "3"), container("beside", restart_policy="Always")),
        restart="Never",
    )
    sync(it, NOW)
    assert it.status.phase == "Pending"
    waiting = it.status.container_statuses[0].state.waiting
    assert waiting is not None
    assert waiting.reason == "PodInitializing"
    found = next(each for each in it.status.conditions if each.type == "Initialized")
    assert found.message == "containers with incomplete status: [first beside]"
    sync(it, NOW + 3)
    assert it.status.phase == "Running"
    assert [bool(each.state.running) for each in it.status.init_container_statuses] == [False, True]
    assert ready(it)[0] == "True"


def test_sidecars_end_with_the_containers() -> None:
    it = pod(container("c", "sleep", "2"), init=(container("beside", restart_policy="Always"),), restart="Never")
    sync(it, NOW)
    sync(it, NOW + 2)
    assert it.status.phase == "Succeeded"
    assert it.status.init_container_statuses[0].state.terminated is not None


def phases_at(it: Pod, *moments: float) -> list[str]:
    """Return the phases of a pod at some times, on a node without records of its containers."""
    phases = []
    for moment in moments:
        sync(it, NOW + moment)
        phases.append(it.status.phase)
    return phases


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_a_sidecar_that_ends_does_not_decide_the_phase(policy: str) -> None:
    side = container("side", "sh", "-c", "sleep 1; exit 7", restart_policy="Always")
    it = pod(container("main", "sh", "-c", "sleep 5"), init=(side,), restart=policy)
    assert phases_at(it, 0, 1, 2, 3, 4) == ["Running"] * 5
    waiting = it.status.init_container_statuses[0].state.waiting
    assert waiting is not None
    assert waiting.reason == "CrashLoopBackOff"
    assert phases_at(it, 5) == ["Succeeded"]


def test_a_container_is_started_again_while_its_sidecar_waits() -> None:
    side = container("side", "sh", "-c", "sleep 1; exit 7", restart_policy="Always")
    it = pod(container("main", "sh", "-c", "sleep 4; exit 1"), init=(side,))
    phases_at(it, 0, 1, 2, 4)
    assert it.status.container_statuses[0].restart_count == 1
    assert it.status.phase == "Running"


def test_a_sidecar_that_never_starts_keeps_the_pod_pending() -> None:
    side = container("side", restart_policy="Always", startup_probe=Probe(initial_delay_seconds=5))
    it = pod(container("main"), init=(side,))
    assert phases_at(it, 0, 4) == ["Pending", "Pending"]
    assert phases_at(it, 5) == ["Running"]


def test_policies_of_containers_decide_the_phase() -> None:
    failing = container("c", "sh", "-c", "sleep 1; exit 1", restart_policy="Never")
    it = pod(container("d", "true", restart_policy="Never"), failing)
    assert phases_at(it, 0, 1) == ["Running", "Failed"]
    it = pod(container("c", "sh", "-c", "sleep 1; exit 1", restart_policy="Always"), restart="Never")
    assert phases_at(it, 0, 1, 2) == ["Running", "Running", "Running"]
    rule = ContainerRestartRule(action="Restart", exit_codes=ContainerRestartRuleOnExitCodes(operator="In", values=[3]))
    first = container("first", "sh", "-c", "exit 3", restart_policy="Never", restart_policy_rules=[rule])
    it = pod(container("main"), init=(first,), restart="Never")
    assert phases_at(it, 0, 1, 2) == ["Pending", "Pending", "Pending"]


def test_an_init_container_that_fails_keeps_the_others_from_starting() -> None:
    it = pod(container(), init=(container("first", "false"),), restart="Never")
    sync(it, NOW)
    assert it.status.phase == "Failed"
    it = pod(container(), init=(container("first", "false"),))
    sync(it, NOW)
    assert it.status.phase == "Pending"
    assert it.status.init_container_statuses[0].restart_count == 1


def test_a_pod_of_a_job_ends_well() -> None:
    it = pod(container("c", "perl", "-e", "1"), restart="Never")
    owner = OwnerReference(api_version="batch/v1", kind="Job", name="j", uid="j", controller=True)
    it.metadata.owner_references = [owner]
    sync(it, NOW)
    assert it.status.phase == "Succeeded"


def test_annotations_say_what_a_container_does() -> None:
    it = pod(container("one"), container("two"), restart="Never")
    it.metadata.annotations = {f"{PREFIX}run-for": "1m", f"{PREFIX}exit-code.two": "7", f"{PREFIX}ready-after": "10s"}
    sync(it, NOW)
    assert ready(it)[0] == "False"
    sync(it, NOW + 10)
    assert ready(it)[0] == "True"
    sync(it, NOW + 60)
    assert it.status.phase == "Failed"


def test_probes_delay_readiness() -> None:
    it = pod(container(startup_probe=Probe(initial_delay_seconds=5), readiness_probe=Probe(initial_delay_seconds=8)))
    assert sync(it, NOW).next_sync == NOW + 5
    started = [it.status.container_statuses[0].started]
    sync(it, NOW + 5)
    assert [*started, it.status.container_statuses[0].started] == [False, True]
    assert ready(it)[0] == "False"
    sync(it, NOW + 8)
    assert ready(it)[0] == "True"


def test_readiness_gates_are_waited_for() -> None:
    it = pod(container(), readiness_gates=[PodReadinessGate(condition_type="example.com/up")])
    sync(it, NOW)
    text = 'corresponding condition of pod readiness gate "example.com/up" does not exist.'
    assert ready(it) == ("False", "ReadinessGatesNotReady", text)


def test_a_pod_that_is_deleted_stops_and_is_over() -> None:
    it = pod(container())
    sync(it, NOW)
    delete(it, NOW)
    done = sync(it, times.unix(it.metadata.deletion_timestamp or "") - 30)
    assert done.is_finished
    assert it.status.phase == "Failed"
    assert [each.reason for each in done.events] == ["Killing"]


def test_a_pod_takes_its_time_to_stop_within_its_grace() -> None:
    it = pod(container())
    it.metadata.annotations = {f"{PREFIX}stop-after": "50s"}
    sync(it, NOW)
    delete(it, NOW)
    end = times.unix(it.metadata.deletion_timestamp or "")
    assert not sync(it, end - 30).is_finished
    assert not sync(it, end).is_finished  # it was deleted within the second after that; the exact time is not kept
    assert sync(it, end + 1).is_finished


def test_a_deadline_ends_a_pod() -> None:
    it = pod(container(), active_deadline_seconds=60)
    assert sync(it, NOW).next_sync == NOW + 60
    sync(it, NOW + 60)
    assert (it.status.phase, it.status.reason) == ("Failed", "DeadlineExceeded")


def test_images_are_named_in_full() -> None:
    assert image_name("nginx") == "docker.io/library/nginx:latest"
    assert image_name("team/app:1") == "docker.io/team/app:1"
    assert image_name("localhost/app") == "localhost/app:latest"
    assert image_name("registry.example:5000/app@sha256:0") == "registry.example:5000/app@sha256:0"


def with_annotations(it: Pod, **annotations: str) -> Pod:
    """Return the pod with annotations of the simulation."""
    it.metadata.annotations = {f"{PREFIX}{name.replace('_', '-')}": value for name, value in annotations.items()}
    return it


def waiting_reason(it: Pod) -> tuple[str, str]:
    waiting = it.status.container_statuses[0].state.waiting
    assert waiting is not None
    return waiting.reason, waiting.message


def test_the_pull_of_an_unavailable_image_is_retried() -> None:
    it = with_annotations(pod(container()), pull_error="true")
    done = sync(it, NOW)
    why = (
        'rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/library/nginx:latest": failed to '
        'resolve reference "docker.io/library/nginx:latest": docker.io/library/nginx:latest: not found'
    )
    assert waiting_reason(it) == ("ErrImagePull", why)
    assert [(each.reason, each.message) for each in done.events] == [
        ("Pulling", 'Pulling image "nginx"'),
        ("Failed", f'Failed to pull image "nginx": {why}'),
        ("Failed", "Error: ErrImagePull"),
    ]
    place = PodContext(CONTEXT.host_ips, CONTEXT.pod_ips, records=done.records)
    done = sync_pod(it, place, NOW + 1)
    it.status = done.status
    assert waiting_reason(it) == ("ImagePullBackOff", f'Back-off pulling image "nginx": ErrImagePull: {why}')
    assert [each.message for each in done.events] == ['Back-off pulling image "nginx"', "Error: ImagePullBackOff"]
    assert done.next_sync == NOW + 10
    done = sync_pod(it, PodContext(CONTEXT.host_ips, CONTEXT.pod_ips, records=done.records), NOW + 10)
    assert done.records["c"].pulls == Pulls(2, NOW + 10)
    assert Pulls(2, NOW + 10).next == NOW + 30
    it.metadata.annotations = {}
    sync(it, NOW + 11)
    assert it.status.phase == "Running"


@pytest.mark.parametrize("pattern", ["nginx", "docker.io/library/nginx:*", "*/nginx:latest"])
def test_missing_images_are_matched_by_name(pattern: str) -> None:
    it = pod(container())
    it.status = sync_pod(
        it, PodContext(CONTEXT.host_ips, CONTEXT.pod_ips, missing_images=("other", pattern)), NOW
    ).status
    assert waiting_reason(it)[0] == "ErrImagePull"
    it.status = sync_pod(it, PodContext(CONTEXT.host_ips, CONTEXT.pod_ips, missing_images=("other",)), NOW + 10).status
    assert it.status.phase == "Running"


def test_a_container_can_run_out_of_memory() -> None:
    it = with_annotations(pod(container()), oom_after="5s")
    sync(it, NOW)
    sync(it, NOW + 5)
    ended = it.status.container_statuses[0].last_state.terminated
    assert ended is not None
    assert (ended.exit_code, ended.reason) == (137, "OOMKilled")


def test_a_container_can_be_ended_from_inside() -> None:
    it = pod(container(), restart="Never")
    sync(it, NOW)
    name = it.status.container_statuses[0].container_id
    other = PodContext(CONTEXT.host_ips, CONTEXT.pod_ips, exits={"c": ContainerExit("another", 9, NOW + 3)})
    assert sync_pod(it, other, NOW + 4).status.phase == "Running"
    done = sync_pod(
        it, PodContext(CONTEXT.host_ips, CONTEXT.pod_ips, exits={"c": ContainerExit(name, 9, NOW + 3)}), NOW + 4
    )
    assert done.status.phase == "Failed"


def test_containers_of_a_slow_node_begin_late() -> None:
    slow = PodContext(CONTEXT.host_ips, CONTEXT.pod_ips, start_delay=5)
    it = pod(container())
    done = sync_pod(it, slow, NOW)
    it.status = done.status
    assert (waiting_reason(it)[0], done.next_sync) == ("ContainerCreating", NOW + 5)
    assert sync_pod(it, slow, NOW + 5).status.phase == "Running"
    it = with_annotations(pod(container()), start_delay="0s")
    assert sync_pod(it, slow, NOW).status.phase == "Running"


def resizable(cpu: str, **more: Any) -> Pod:
    return pod(container(resources=ResourceRequirements(requests={"cpu": cpu, "memory": "1Gi"}), **more))


def conditions(it: Pod) -> dict[str, tuple[str, str]]:
    return {each.type: (each.reason, each.message) for each in it.status.conditions if "Resize" in each.type}


def resize(it: Pod, cpu: str) -> None:
    assert it.spec.containers is not None
    it.spec.containers[0].resources = ResourceRequirements(requests={"cpu": cpu, "memory": "1Gi"})
    it.metadata.generation += 1


def test_a_container_is_given_more_while_it_runs() -> None:
    it = resizable("1")
    sync(it, NOW)
    assert not sync(it, NOW).changed
    resize(it, "2")
    done = sync(it, NOW + 1)
    status = it.status.container_statuses[0]
    assert [each.reason for each in done.events] == ["ResizeStarted"]
    assert conditions(it) == {"PodResizeInProgress": ("", "")}
    assert (status.allocated_resources["cpu"], done.next_sync) == ("2", NOW + 1)
    done = sync(it, NOW + 1)
    status = it.status.container_statuses[0]
    assert [each.message for each in done.events] == [
        'Pod resize completed: {"containers":[{"name":"c","resources":{"requests":{"cpu":"2","memory":"1Gi"}}}],'
        '"generation":2}'
    ]
    assert status.resources is not None
    assert (status.resources.requests["cpu"], status.restart_count, conditions(it)) == ("2", 0, {})


def test_a_resized_container_restarts_if_its_policy_says_so() -> None:
    it = resizable("1", resize_policy=[ContainerResizePolicy(resource_name="cpu", restart_policy="RestartContainer")])
    sync(it, NOW)
    resize(it, "2")
    sync(it, NOW + 1)
    done = sync(it, NOW + 1)
    assert [each.message for each in done.events][1] == "Container c resize requires restart"
    assert it.status.container_statuses[0].restart_count == 1
    assert it.status.container_statuses[0].state.running is not None


def test_what_the_node_does_not_have_is_put_off() -> None:
    others = [resizable("3")]
    place = PodContext(
        CONTEXT.host_ips, CONTEXT.pod_ips, capacity=NodeCapacity({"cpu": "4", "memory": "8Gi"}, lambda: others)
    )
    others[0].metadata.uid = "other"
    it = resizable("1")
    it.status = sync_pod(it, place, NOW).status
    resize(it, "2")
    done = sync_pod(it, place, NOW + 1)
    it.status = done.status
    text = "Node didn't have enough resource: cpu, requested: 2000, used: 3000, capacity: 4000"
    assert conditions(it) == {"PodResizePending": ("Deferred", text)}
    assert [(each.type, each.reason) for each in done.events] == [("Warning", "ResizeDeferred")]
    assert done.next_sync == NOW + 31
    assert sync_pod(it, place, NOW + 2).events == []
    others.clear()
    it.status = sync_pod(it, place, NOW + 31).status
    assert set(conditions(it)) == {"PodResizeInProgress"}


def test_the_status_of_a_debugging_container_is_never_ready() -> None:
    it = pod(container(), ephemeral_containers=[EphemeralContainer(name="d", image="busybox")])
    sync(it, NOW)
    status = it.status.ephemeral_container_statuses[0]
    assert status.state.running is not None
    assert (status.ready, status.started) == (False, None)


def test_a_container_can_restart_all_containers() -> None:
    rule = ContainerRestartRule(
        action="RestartAllContainers", exit_codes=ContainerRestartRuleOnExitCodes(operator="In", values=[42])
    )
    worker = container("w", "sh", "-c", "sleep 5; exit 42", restart_policy="Never", restart_policy_rules=[rule])
    it = pod(container("c"), worker, restart="Never", init=(container("i", "sleep", "2"),))
    sync(it, NOW)
    sync(it, NOW + 2)
    assert it.status.phase == "Running"
    done = sync(it, NOW + 7)
    restarting = next(each for each in it.status.conditions if each.type == "AllContainersRestarting")
    assert (restarting.status, restarting.reason) == ("True", "RestartAllContainersStarted")
    assert [each.state.waiting.reason for each in it.status.container_statuses if each.state.waiting] == [
        "RestartingAllContainers",
        "RestartingAllContainers",
    ]
    assert [each.message for each in done.events] == ["killing"]
    assert done.next_sync == NOW + 7
    sync(it, NOW + 7)
    assert it.status.init_container_statuses[0].state.running is not None
    assert it.status.phase == "Pending"
    sync(it, NOW + 9)
    assert it.status.phase == "Running"
    assert [each.restart_count for each in it.status.container_statuses] == [1, 1]
    restarting = next(each for each in it.status.conditions if each.type == "AllContainersRestarting")
    assert restarting.status == "False"


def pod_with_resources(cpu: str, limit: str, *containers: Container) -> Pod:
    """Return a pod with resources at the level of the pod."""
    it = pod(*(containers or (container("a"), container("b"))))
    it.spec.resources = ResourceRequirements(
        requests={"cpu": cpu, "memory": "100Mi"}, limits={"cpu": limit, "memory": "200Mi"}
    )
    return it


def resize_pod(it: Pod, cpu: str, limit: str) -> None:
    it.spec.resources = pod_with_resources(cpu, limit).spec.resources
    it.metadata.generation += 1


def test_a_pod_as_a_whole_is_given_more_while_it_runs() -> None:
    it = pod_with_resources("1", "2")
    sync(it, NOW)
    assert it.status.resources == it.spec.resources
    assert it.status.allocated_resources == {"cpu": "1", "memory": "100Mi"}
    resize_pod(it, "1500m", "3")
    done = sync(it, NOW + 1)
    assert [each.reason for each in done.events] == ["ResizeStarted"]
    assert (set(conditions(it)), it.status.allocated_resources["cpu"]) == ({"PodResizeInProgress"}, "1500m")
    assert it.status.resources is not None
    assert it.status.resources.requests["cpu"] == "1"
    done = sync(it, NOW + 1)
    assert [each.reason for each in done.events] == ["ResizeCompleted"]
    assert (conditions(it), it.status.resources) == ({}, it.spec.resources)
    assert not sync(it, NOW + 2).changed


def test_a_pod_that_asks_for_more_than_there_is_keeps_what_it_has() -> None:
    place = PodContext(CONTEXT.host_ips, CONTEXT.pod_ips, capacity=NodeCapacity({"cpu": "4", "memory": "8Gi"}, list))
    it = pod_with_resources("1", "2")
    it.status = sync_pod(it, place, NOW).status
    resize_pod(it, "5", "5")
    it.status = sync_pod(it, place, NOW + 1).status
    text = "Node didn't have enough resource: cpu, requested: 5000, used: 0, capacity: 4000"
    assert conditions(it) == {"PodResizePending": ("Deferred", text)}
    assert it.status.allocated_resources["cpu"] == "1"
    assert pod_requests(it)["cpu"] == Quantity(5)
    resize_pod(it, "1", "2")
    it.status = sync_pod(it, place, NOW + 2).status
    assert (conditions(it), it.status.allocated_resources["cpu"]) == ({}, "1")


def test_a_pod_counts_with_the_most_of_what_it_wants_and_has() -> None:
    it = pod_with_resources("1", "2")
    sync(it, NOW)
    resize_pod(it, "500m", "1")
    assert str(pod_requests(it)["cpu"]) == "1"
    assert str(pod_requests(it, whole_as_reported=False)["cpu"]) == "500m"
    assert used_by(it).total.milli_cpu == 1000
    sync(it, NOW + 1)
    sync(it, NOW + 1)
    assert str(pod_requests(it)["cpu"]) == "500m"
    assert used_by(it).total.milli_cpu == 500


def test_a_container_under_its_pods_limits_restarts_if_its_policy_says_so() -> None:
    policy = [ContainerResizePolicy(resource_name="cpu", restart_policy="RestartContainer")]
    own = ResourceRequirements(limits={"cpu": "1"})
    it = pod_with_resources(
        "1", "2", container("held", resize_policy=policy), container("own", resize_policy=policy, resources=own)
    )
    sync(it, NOW)
    resize_pod(it, "1", "3")
    sync(it, NOW + 1)
    sync(it, NOW + 1)
    assert [each.restart_count for each in it.status.container_statuses] == [1, 0]


def test_resources_of_all_containers_are_reported_for_every_pod() -> None:
    it = pod(container())
    sync(it, NOW)
    assert (it.status.resources, it.status.allocated_resources) == (ResourceRequirements(), {})
    asked = ResourceRequirements(requests={"cpu": "1", "memory": "1Gi"}, limits={"memory": "2Gi"})
    it = pod(container("a", resources=asked), container("b", resources=asked), overhead={"cpu": "100m"})
    it.spec.init_containers = [container("i", "sleep", "5", resources=asked)]
    sync(it, NOW)
    assert it.status.phase == "Pending"
    assert it.status.resources == ResourceRequirements(
        requests={"cpu": "2100m", "memory": "2Gi"}, limits={"memory": "4Gi"}
    )
    sync(it, NOW + 5)
    assert it.status.allocated_resources == {"cpu": "2100m", "memory": "2Gi"}
    unbounded = ResourceRequirements(requests={"cpu": "1", "memory": "1Gi"})
    it = pod(container("a", resources=unbounded), container("b", resources=asked))
    sync(it, NOW)
    assert it.status.resources == ResourceRequirements(requests={"cpu": "2", "memory": "2Gi"})


def test_a_status_tells_as_whom_a_container_runs() -> None:
    own = SecurityContext(run_as_user=1000, run_as_group=7)
    it = pod(
        container("a"),
        container("b", security_context=own),
        security_context=PodSecurityContext(supplemental_groups=[60, 50], fs_group=2000),
    )
    sync(it, NOW)
    users = [each.user.linux for each in it.status.container_statuses if each.user is not None]
    assert [(each.uid, each.gid, each.supplemental_groups) for each in users if each is not None] == [
        (0, 0, [0, 50, 60, 2000]),
        (1000, 7, [7, 50, 60, 2000]),
    ]


@pytest.mark.parametrize(
    ("shared", "own", "is_refused"),
    [
        (PodSecurityContext(run_as_non_root=True, run_as_user=0), None, True),
        (PodSecurityContext(run_as_non_root=True), SecurityContext(run_as_user=0), True),
        (PodSecurityContext(run_as_user=0), SecurityContext(run_as_non_root=True), True),
        (PodSecurityContext(run_as_non_root=True, run_as_user=0), SecurityContext(run_as_user=5), False),
        (PodSecurityContext(run_as_non_root=True), SecurityContext(run_as_non_root=False, run_as_user=0), False),
        (PodSecurityContext(run_as_non_root=True), None, False),
    ],
)
def test_a_container_that_must_not_be_root_is_not(
    shared: PodSecurityContext, own: SecurityContext | None, *, is_refused: bool
) -> None:
    it = pod(container(security_context=own), security_context=shared)
    done = sync(it, NOW)
    if is_refused:
        text = 'container\'s runAsUser breaks non-root policy (pod: "p_n(u)", container: c)'
        assert waiting_reason(it) == ("CreateContainerConfigError", text)
        assert done.events[-1].message == f"Error: {text}"
    else:
        assert it.status.phase == "Running"


def test_a_pod_whose_full_name_is_too_long_gets_no_sandbox() -> None:
    it = pod(container(), subdomain="s" * 50, set_hostname_as_fqdn=True)
    done = sync(it, NOW)
    assert waiting_reason(it)[0] == "ContainerCreating"
    assert (it.status.pod_ip, done.next_sync) == ("", NOW + 12)
    (reported,) = done.events
    assert (reported.type, reported.reason) == ("Warning", "FailedCreatePodSandBox")
    assert reported.message.startswith("Failed to create pod sandbox: failed to construct FQDN from pod hostname")


def test_omitted_name_servers_are_reported_once() -> None:
    it = pod(container(), dns_config=PodDNSConfig(nameservers=["192.0.2.1", "192.0.2.2", "192.0.2.3"]))
    assert [each.reason for each in sync(it, NOW).events][:1] == ["DNSConfigForming"]
    assert sync(it, NOW + 1).events == []


def test_mounts_tell_how_they_are_read_only() -> None:
    mounts = [
        VolumeMount(name="d", mount_path=f"/{number}", read_only=number > 0, recursive_read_only=mode)
        for number, mode in enumerate((None, None, "Disabled", "IfPossible", "Enabled"))
    ]
    it = pod(container(volume_mounts=mounts))
    sync(it, NOW)
    found = [each.recursive_read_only for each in it.status.container_statuses[0].volume_mounts]
    assert found == [None, "Disabled", "Disabled", "Enabled", "Enabled"]


def test_a_pod_with_a_long_command_takes_long() -> None:
    words = Container(name="c", command=["echo", "hello"])
    assert not takes_long(Pod(spec=PodSpec(containers=[words])))
    assert takes_long(Pod(spec=PodSpec(containers=[words], init_containers=[Container(args=["$(A)" * 10_000])])))
    assert takes_long(Pod(spec=PodSpec(containers=[Container(env=[EnvVar(name="E", value="$(A)" * 10_000)])])))

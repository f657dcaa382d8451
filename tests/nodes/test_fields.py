"""Treatment of every field of pods and nodes by simulated nodes.

A field of the schema that is in none of these lists fails the test: check what a kubelet does with it, and add it.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import steersman
from steersman.api.core.v1 import NodeSpec, NodeStatus, Pod, PodSpec, PodStatus
from steersman.api.meta.v1 import ObjectMeta
from steersman.machinery.codec.serializer import from_plain
from steersman.nodes.unsimulated import all_fields, event_message, fields_without_effect

ROOTS = (PodSpec, PodStatus, NodeSpec, NodeStatus)

DONE = """
PodSpec: volumes initContainers containers ephemeralContainers restartPolicy terminationGracePeriodSeconds
  activeDeadlineSeconds dnsPolicy nodeSelector serviceAccountName nodeName hostNetwork securityContext imagePullSecrets
  hostname subdomain affinity tolerations hostAliases priority dnsConfig readinessGates enableServiceLinks overhead
  setHostnameAsFQDN shareProcessNamespace os resources hostnameOverride
PodSecurityContext: runAsUser runAsGroup runAsNonRoot supplementalGroups supplementalGroupsPolicy fsGroup sysctls
SecurityContext: runAsUser runAsGroup runAsNonRoot
Container, EphemeralContainer: name image command args workingDir ports envFrom env resources resizePolicy restartPolicy
  restartPolicyRules volumeMounts livenessProbe readinessProbe startupProbe lifecycle terminationMessagePath
  terminationMessagePolicy imagePullPolicy securityContext stdin stdinOnce tty
EphemeralContainer: targetContainerName
ContainerPort: hostPort containerPort protocol hostIP
ContainerResizePolicy: resourceName restartPolicy
ContainerRestartRule: action exitCodes
ContainerRestartRuleOnExitCodes: operator values
EnvVar: name value valueFrom
EnvVarSource: fieldRef resourceFieldRef configMapKeyRef secretKeyRef fileKeyRef
EnvFromSource: prefix configMapRef secretRef
FileKeySelector: volumeName path key optional
ConfigMapEnvSource, SecretEnvSource: name optional
ConfigMapKeySelector, SecretKeySelector: name key optional
ObjectFieldSelector: fieldPath
ResourceFieldSelector: containerName resource divisor
Lifecycle: postStart preStop
LifecycleHandler: exec sleep
ExecAction: command
SleepAction: seconds
Probe: exec httpGet tcpSocket grpc initialDelaySeconds timeoutSeconds periodSeconds successThreshold failureThreshold
  terminationGracePeriodSeconds
TCPSocketAction: port host
ResourceRequirements: limits requests
HostAlias: ip hostnames
PodDNSConfig: nameservers searches options
PodDNSConfigOption: name value
PodOS: name
PodReadinessGate: conditionType
Sysctl: name
Taint: key value effect
Toleration: key operator value effect
Volume: name hostPath emptyDir secret nfs persistentVolumeClaim downwardAPI configMap projected ephemeral
HostPathVolumeSource: path
EmptyDirVolumeSource: medium sizeLimit
NFSVolumeSource: server path
PersistentVolumeClaimVolumeSource: claimName
ConfigMapVolumeSource: name items defaultMode optional
SecretVolumeSource: secretName items defaultMode optional
DownwardAPIVolumeSource: items defaultMode
DownwardAPIVolumeFile: path fieldRef resourceFieldRef mode
KeyToPath: key path mode
ProjectedVolumeSource: sources defaultMode
VolumeProjection: secret downwardAPI configMap serviceAccountToken
SecretProjection, ConfigMapProjection: name items optional
DownwardAPIProjection: items
ServiceAccountTokenProjection: audience expirationSeconds path
VolumeMount: name recursiveReadOnly mountPath subPath subPathExpr
LocalObjectReference: name
PodStatus: observedGeneration phase conditions message reason hostIP hostIPs podIP podIPs startTime
  initContainerStatuses containerStatuses ephemeralContainerStatuses allocatedResources resources
PodCondition: type observedGeneration status lastProbeTime lastTransitionTime reason message
PodIP, HostIP: ip
ContainerStatus: name state lastState ready restartCount image imageID containerID started allocatedResources resources
  volumeMounts user
ContainerState: waiting running terminated
ContainerStateRunning: startedAt
ContainerStateTerminated: exitCode reason message startedAt finishedAt containerID
ContainerStateWaiting: reason message
ContainerUser: linux
LinuxContainerUser: uid gid supplementalGroups
VolumeMountStatus: name mountPath readOnly recursiveReadOnly
NodeSpec: podCIDR podCIDRs taints
NodeStatus: capacity allocatable conditions addresses daemonEndpoints nodeInfo images volumesInUse runtimeHandlers
  features declaredFeatures
NodeCondition: type status lastHeartbeatTime lastTransitionTime reason message
NodeAddress: type address
NodeDaemonEndpoints: kubeletEndpoint
DaemonEndpoint: Port
NodeSystemInfo: machineID systemUUID bootID kernelVersion osImage containerRuntimeVersion kubeletVersion
  operatingSystem architecture
ContainerImage: names sizeBytes
NodeFeatures: supplementalGroupsPolicy
NodeRuntimeHandler: name features
NodeRuntimeHandlerFeatures: recursiveReadOnlyMounts userNamespaces
"""
"""A simulated node does the same with these as a kubelet."""

HANDLED_BY_OTHERS = """
PodSpec: serviceAccount automountServiceAccountToken schedulerName priorityClassName preemptionPolicy
  topologySpreadConstraints schedulingGates schedulingGroup
PodStatus: nominatedNodeName qosClass resourceClaimStatuses extendedResourceClaimStatus
  nodeAllocatableResourceClaimStatuses
ContainerPort: name
ObjectFieldSelector: apiVersion
EphemeralVolumeSource: volumeClaimTemplate
Toleration: tolerationSeconds
Taint: timeAdded
NodeSpec: providerID unschedulable
NodeStatus: volumesAttached
Affinity PodAffinity PodAntiAffinity PodAffinityTerm WeightedPodAffinityTerm PreferredSchedulingTerm NodeAffinity
NodeSelector NodeSelectorTerm NodeSelectorRequirement LabelSelector LabelSelectorRequirement TopologySpreadConstraint
PodSchedulingGate PodSchedulingGroup AttachedVolume ObjectMeta OwnerReference ManagedFieldsEntry
PersistentVolumeClaimTemplate PersistentVolumeClaimSpec VolumeResourceRequirements TypedLocalObjectReference
TypedObjectReference PodResourceClaimStatus PodExtendedResourceClaimStatus ContainerExtendedResourceRequest
NodeAllocatableResourceClaimStatus
"""
"""The API server, the scheduler, controllers or clients handle these. Lines without a colon name whole types."""

NOT_SIMULATED = """
PodSpec: hostUsers
PodSecurityContext: seLinuxOptions fsGroupChangePolicy seccompProfile appArmorProfile seLinuxChangePolicy
SecurityContext: capabilities privileged seLinuxOptions readOnlyRootFilesystem allowPrivilegeEscalation procMount
  seccompProfile appArmorProfile
VolumeMount: readOnly mountPropagation
Sysctl: value
ResourceRequirements: claims
PodSpec: resourceClaims
HostPathVolumeSource: type
NFSVolumeSource, PersistentVolumeClaimVolumeSource: readOnly
LifecycleHandler: httpGet tcpSocket
Capabilities SELinuxOptions SeccompProfile AppArmorProfile HTTPGetAction HTTPHeader GRPCAction
PodResourceClaim ResourceClaim
"""
"""These affect programs, file systems and networks that are not simulated; docs/up-containers.md says so."""

REPORTED = """
PodSpec: hostPID hostIPC runtimeClassName
PodSecurityContext, SecurityContext: windowsOptions
Container, EphemeralContainer: volumeDevices
Volume: gcePersistentDisk awsElasticBlockStore gitRepo iscsi glusterfs rbd flexVolume cinder cephfs flocker fc azureFile
  vsphereVolume quobyte azureDisk photonPersistentDisk portworxVolume scaleIO storageos csi image
VolumeProjection: clusterTrustBundle podCertificate
AWSElasticBlockStoreVolumeSource AzureDiskVolumeSource AzureFileVolumeSource CSIVolumeSource CephFSVolumeSource
CinderVolumeSource ClusterTrustBundleProjection FCVolumeSource FlexVolumeSource FlockerVolumeSource
GCEPersistentDiskVolumeSource GitRepoVolumeSource GlusterfsVolumeSource ISCSIVolumeSource ImageVolumeSource
PhotonPersistentDiskVolumeSource PodCertificateProjection PortworxVolumeSource QuobyteVolumeSource
RBDVolumeSource ScaleIOVolumeSource StorageOSVolumeSource VolumeDevice VsphereVirtualDiskVolumeSource
WindowsSecurityContextOptions
"""
"""These have no effect, which an event says."""

NEVER = """
Lifecycle: stopSignal
PodStatus: resize
ContainerStatus: allocatedResourcesStatus stopSignal
ContainerStateTerminated: signal
VolumeMountStatus: volumeStatus
NodeSpec: configSource externalID
NodeStatus: phase config
NodeSystemInfo: kubeProxyVersion swap
VolumeStatus ImageVolumeStatus ResourceStatus ResourceHealth NodeConfigSource ConfigMapNodeConfigSource
NodeConfigStatus NodeSwapStatus
"""
"""Kubelets of this version neither write nor read these: features that are off by default, removed fields, devices and
swap that nodes do not have.
"""

LISTS = {
    "done": DONE,
    "of others": HANDLED_BY_OTHERS,
    "of a kernel": NOT_SIMULATED,
    "reported": REPORTED,
    "never": NEVER,
}


def listed_fields(text: str) -> Iterator[tuple[str, str]]:
    """Yield types with their fields, and whole types with `*`."""
    for line in re.sub(r"\n +", " ", text).strip().splitlines():
        names, colon, fields = line.partition(":")
        for name in names.replace(",", " ").split():
            for each in fields.split() if colon else ["*"]:
                yield name, each


def schema() -> dict[str, frozenset[str]]:
    """Return all types reachable from the roots, with the JSON names of their fields."""
    found: dict[str, frozenset[str]] = {}
    waiting: list[type[msgspec.Struct]] = list(ROOTS)
    while waiting:
        one = waiting.pop()
        if one.__name__ in found:
            continue
        found[one.__name__] = frozenset(each.encode_name for each in msgspec.structs.fields(one))
        for hint in typing.get_type_hints(one).values():
            waiting.extend(_structs(hint))
    return found


def _structs(hint: typing.Any) -> Iterator[type[msgspec.Struct]]:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        yield hint
    for each in typing.get_args(hint):
        yield from _structs(each)


def test_every_field_is_judged_once() -> None:
    there = schema()
    seen: dict[tuple[str, str], str] = {}
    for name, text in LISTS.items():
        for kind, one in listed_fields(text):
            fields = there[kind] if one == "*" else {one}
            for each in fields:
                assert each in there[kind], f"{kind}.{each} is no field"
                assert (kind, each) not in seen, f"{kind}.{each} is {seen[kind, each]} and {name}"
                seen[kind, each] = name
    assert [f"{kind}.{each}" for kind, fields in there.items() for each in fields if (kind, each) not in seen] == []


def pod_with(path: str) -> Pod:
    """Return a pod that has some value in a field given by its path in the spec."""
    *folders, last = path.split(".")
    kind: typing.Any = PodSpec
    for each in folders:
        kind = _type_of(kind, each.removesuffix("[]"))
    spec: typing.Any = _sample(_hint(kind, last))
    for each in (last, *reversed(folders)):
        name = each.removesuffix("[]")
        spec = {name: [spec] if each.endswith("[]") else spec}
    return Pod(metadata=ObjectMeta(name="p"), spec=from_plain(PodSpec, spec))


def _hint(kind: typing.Any, name: str) -> typing.Any:
    attribute = next(each.name for each in msgspec.structs.fields(kind) if each.encode_name == name)
    return typing.get_type_hints(kind)[attribute]


def _type_of(kind: typing.Any, name: str) -> typing.Any:
    return next(_structs(_hint(kind, name)))


def _sample(hint: typing.Any) -> typing.Any:
    """Return a non-empty value of a type."""
    if typing.get_origin(hint) is list:
        return [{}]
    if any(_structs(hint)):
        return {}
    return "x" if "str" in str(hint) else True


@pytest.mark.parametrize("path", all_fields())
def test_a_field_without_effect_is_reported(path: str) -> None:
    assert fields_without_effect(pod_with(path)) == [path]


def test_a_pod_without_ineffective_fields_gets_no_event() -> None:
    spec = {
        "containers": [{"name": "c", "securityContext": {"privileged": True}, "volumeMounts": [{"name": "v"}]}],
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "s", "projected": {"sources": [{"secret": {}}]}}],
    }
    assert fields_without_effect(Pod(spec=from_plain(PodSpec, spec))) == []
    assert (
        event_message(["hostPID", "volumes[].image"])
        == "no effect on a simulated node: spec.hostPID, spec.volumes[].image"
    )


def test_reported_fields_equal_the_listed_ones() -> None:
    """Every field in the list is found in a pod, and every found field is in the list."""
    listed = {one for kind, one in listed_fields(REPORTED) if one != "*" and kind != "ResourceRequirements"}
    assert {each.rpartition(".")[2] for each in all_fields()} == listed


def test_the_docs_name_reported_fields() -> None:
    text = (Path(steersman.__file__).parents[2] / "docs" / "up-containers.md").read_text()
    section = text[text.index("## Fields without effect") :]
    section = section[: section.index("\n## ", 5)]
    names = {each.rpartition(".")[2] for each in all_fields()} | {
        one for _, one in listed_fields(NOT_SIMULATED) if one != "*"
    }
    assert [each for each in sorted(names) if f"`{each}`" not in section] == []

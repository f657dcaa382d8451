"""Environment of a simulated container, as a kubelet sets it up: its variables and the files of its volumes.

Follows pkg/kubelet `kubelet_pods.go` (makeEnvironmentVariables), `envvars`, and the volume plugins of ConfigMaps,
Secrets, the downward API and projections. ConfigMaps and Secrets are read when a command needs them.
"""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from steersman.api.authentication.v1 import BoundObjectReference, TokenRequest, TokenRequestSpec
from steersman.api.core.v1 import (
    Container,
    ContainerUser,
    DownwardAPIVolumeFile,
    EnvVarSource,
    KeyToPath,
    LinuxContainerUser,
    ObjectFieldSelector,
    Pod,
    ResourceFieldSelector,
    Service,
    Volume,
    VolumeProjection,
)
from steersman.client.client import Client
from steersman.client.errors import is_not_found
from steersman.client.resources import CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS, SERVICES, TOKEN_REQUESTS
from steersman.machinery.built_in.pod_resources import AnyContainer
from steersman.machinery.errors.status import StatusError
from steersman.machinery.values import times
from steersman.machinery.values.quantity import QuantityError, nanos
from steersman.nodes.cgroup_files import cgroup_files
from steersman.nodes.container_status import MOST_IMAGE, all_statuses
from steersman.nodes.dns import resolving_of
from steersman.nodes.naming import hostname_of, hosts_file
from steersman.nodes.references import MOST_NAME
from steersman.nodes.service_variables import service_variables
from steersman.nodes.shell.effects import Identity, World
from steersman.nodes.variables import ArgumentBudget, ArgumentsTooLong, Variables, expanded
from steersman.nodes.volume_files import file_systems, modes
from steersman.work.offloading import offload_if
from steersman.work.patterns import late_pattern
from steersman.work.yielding import time_sliced

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_KEYED: Final = late_pattern(r"metadata\.(labels|annotations)\['(.*)'\]")
_AGNHOST: Final = late_pattern(r"(^|/)agnhost(-2)?([:@]|$)")
_MOST_SERVICES: Final = 500
_FEW_CHARACTERS: Final = 16 << 10
"""Characters in which references to variables are expanded on the event loop."""
_SERVICES_AT_ONCE: Final = 25
"""Services that are read at once: containers that start together hold so many each."""
_TOKEN_SECONDS: Final = 3607
_NANOS: Final = 10**9


def identity_of(pod: Pod, container: AnyContainer) -> Identity:
    """Return the user and groups that a container runs as: root, unless the container or its pod says otherwise."""
    shared, own = pod.spec.security_context, container.security_context
    if shared is None and own is None:
        return Identity()
    user = group = None
    groups: tuple[int, ...] = ()
    if shared is not None:
        user, group = shared.run_as_user, shared.run_as_group
        groups = (*shared.supplemental_groups, *(() if shared.fs_group is None else (shared.fs_group,)))
    if own is not None:
        user = user if own.run_as_user is None else own.run_as_user
        group = group if own.run_as_group is None else own.run_as_group
    return Identity(user or 0, group or 0, groups)


def breaks_non_root(pod: Pod, container: AnyContainer) -> bool:
    """Return True if a container must not run as root and is configured to. The user of its image is not known."""
    found: dict[str, object] = {}
    for each in (pod.spec.security_context, container.security_context):
        if each is not None:
            found |= {"user": each.run_as_user} if each.run_as_user is not None else {}
            found |= {"must": each.run_as_non_root} if each.run_as_non_root is not None else {}
    return bool(found.get("must")) and found.get("user") == 0


def user_of(pod: Pod, container: AnyContainer) -> ContainerUser:
    """Return the user for a container's status, with its own group among the supplemental groups."""
    who = identity_of(pod, container)
    groups = sorted({who.group, *who.groups})
    return ContainerUser(linux=LinuxContainerUser(uid=who.user, gid=who.group, supplemental_groups=groups))


def plain_variables(
    pod: Pod, container: AnyContainer, file_variables: Mapping[str, str] = MappingProxyType({})
) -> Variables:
    """Return the variables of a container whose values need no read of another object.

    Those are variables with literal values, fields of the pod, and `file_variables` (`fileKeyRef`). Raises ArgumentsTooLong.
    """
    variables = Variables(_usual_variables(pod))
    for each in container.env:
        source = each.value_from
        if source is None:
            variables.put(each.name, expanded(each.value, variables))
        elif source.field_ref is not None:
            variables.put(each.name, field_of(pod, source.field_ref))
        elif source.resource_field_ref is not None:
            variables.put(each.name, resource_of(pod, container, source.resource_field_ref, {}))
        elif each.name in file_variables:
            variables.put(each.name, file_variables[each.name])
    return variables


def is_agnhost(container: AnyContainer) -> bool:
    """Return True if a container runs agnhost, by its image or its command."""
    return bool(_AGNHOST.search((container.command[0] if container.command else container.image)[:MOST_IMAGE]))


def unexpanded_command_of(container: AnyContainer) -> list[str]:
    """Return the command and arguments in the pod; the image's own command is known for agnhost only."""
    if not container.command and is_agnhost(container):
        return ["/agnhost", *container.args]
    return [*container.command, *container.args]


def has_long_texts(container: AnyContainer) -> bool:
    """Return True if expanding the command or the variables of a container takes more than a few milliseconds."""
    words = sum(map(len, container.command)) + sum(map(len, container.args))
    return words + sum(len(each.value) for each in container.env) > _FEW_CHARACTERS


def command_of(container: AnyContainer, variables: Mapping[str, str]) -> list[str]:
    """Return the command with its references to variables expanded; unexpanded if the result would be too
    long to run.
    """
    words = unexpanded_command_of(container)
    try:
        return expanded_words(words, variables)
    except ArgumentsTooLong:
        return words


async def offloaded_command_of(container: AnyContainer, variables: Mapping[str, str]) -> list[str]:
    """Return `command_of`, expanded in a worker thread if the command is long."""
    return await offload_if(has_long_texts(container), command_of, container, variables)


def expanded_words(words: Sequence[str], variables: Mapping[str, str]) -> list[str]:
    """Return the words of a command with references to variables expanded. Raises ArgumentsTooLong."""
    budget, found = ArgumentBudget(), []
    for each in words:
        word = expanded(each, variables)
        budget.use(word)
        found.append(word)
    return found


def field_of(pod: Pod, reference: ObjectFieldSelector) -> str:
    """Return the value of a pod's field in the downward API; "" for an unsupported field."""
    path, metadata, status = reference.field_path, pod.metadata, pod.status
    if (keyed := _KEYED.fullmatch(path)) is not None:
        values = metadata.labels if keyed[1] == "labels" else metadata.annotations
        return values.get(keyed[2], "")
    match path:
        case "metadata.labels" | "metadata.annotations":
            values = metadata.labels if path.endswith("labels") else metadata.annotations
            return "\n".join(f'{name}="{values[name]}"' for name in sorted(values))
        case "status.podIPs":
            return ",".join(each.ip for each in status.pod_ips)
        case "status.hostIPs":
            return ",".join(each.ip for each in status.host_ips)
    return {
        "metadata.name": metadata.name,
        "metadata.namespace": metadata.namespace,
        "metadata.uid": metadata.uid,
        "spec.nodeName": pod.spec.node_name,
        "spec.serviceAccountName": pod.spec.service_account_name,
        "status.podIP": status.pod_ip,
        "status.hostIP": status.host_ip,
    }.get(path, "")


def resource_of(
    pod: Pod, container: AnyContainer, reference: ResourceFieldSelector, allocatable: Mapping[str, str]
) -> str:
    """Return a container's request or limit in units of the divisor, rounded up.

    A missing limit is that of the pod as a whole, or the node's `allocatable`.
    """
    if reference.container_name:
        named = [each for each in pod.spec.containers or () if each.name == reference.container_name]
        container = named[0] if named else container
    kind, _, name = reference.resource.partition(".")
    amounts = container.resources.requests
    if kind == "limits":
        whole = {} if pod.spec.resources is None else pod.spec.resources.limits
        amounts = {**allocatable, **whole, **container.resources.limits}
    try:
        unit = nanos(reference.divisor) if reference.divisor else 0
        return str(-(-nanos(amounts.get(name, "0")) // (unit or _NANOS)))
    except QuantityError:
        return "0"


async def initial_world(
    client: Client,
    pod: Pod,
    container: AnyContainer,
    *,
    allocatable: Mapping[str, str] = MappingProxyType({}),
    file_variables: Mapping[str, str] = MappingProxyType({}),
    tokens: bool = True,
) -> World:
    """Return the environment of a container. Objects that are missing or may not be read are left out.

    `allocatable` are the resources of its node, `file_variables` the variables that come from files. Without `tokens`, the
    files with service account tokens are left out. Raises Unreachable.
    """
    reader = _Reader(client, pod, container, allocatable, file_variables, tokens=tokens)
    world = World(hostname_of(pod), {**_usual_variables(pod), **await reader.variables()}, times.unix_now)
    world.files.update(_usual_files(pod))
    if isinstance(container, Container):
        status = next((each for each in all_statuses(pod.status) if each.name == container.name), None)
        whole = None if pod.spec.resources is None else pod.status.resources or pod.spec.resources
        world.files.update(cgroup_files(container.resources, status, whole))
    world.files.update(await reader.files())
    mounts = {each.mount_path.rstrip("/") or "/" for each in container.volume_mounts}
    world.mounts = frozenset(mounts)
    world.folders = world.folders | frozenset(mounts - world.files.keys())
    world.identity = identity_of(pod, container)
    world.modes.update(modes(pod, container, world.files))
    world.file_systems.update(file_systems(pod, container))
    world.folder = container.working_dir or "/"
    return world


async def variables_of(
    client: Client, pod: Pod, container: AnyContainer, allocatable: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables of a container, without those that come from files. Raises StatusError, Unreachable."""
    reader = _Reader(client, pod, container, allocatable, {}, tokens=False)
    return {**_usual_variables(pod), **await reader.variables()}


def _usual_variables(pod: Pod) -> dict[str, str]:
    return {"PATH": PATH, "HOSTNAME": hostname_of(pod), "HOME": "/root"}


def _usual_files(pod: Pod) -> dict[str, bytes]:
    return {
        "/etc/hostname": f"{hostname_of(pod)}\n".encode(),
        "/etc/hosts": hosts_file(pod).encode(),
        "/etc/resolv.conf": resolving_of(pod).file.encode(),
    }


class _Reader:
    """Reads for one container; each ConfigMap and Secret is read once."""

    def __init__(
        self,
        client: Client,
        pod: Pod,
        container: AnyContainer,
        allocatable: Mapping[str, str],
        file_variables: Mapping[str, str],
        *,
        tokens: bool,
    ) -> None:
        self._allocatable = allocatable
        self._file_variables = file_variables
        self._tokens = tokens
        self._client = client
        self._pod = pod
        self._container = container
        self._read_objects: dict[tuple[str, str], dict[str, bytes]] = {}
        self._fields: dict[str, bytes] = {}
        """Values of the pod's fields by field path, shared by all files that show the field."""

    async def _config_map(self, name: str) -> dict[str, bytes]:
        async def read() -> dict[str, bytes]:
            config_map = await self._client.get(CONFIG_MAPS, name, self._pod.metadata.namespace)
            return {**{key: value.encode() for key, value in config_map.data.items()}, **config_map.binary_data}

        return await self._once(("configmaps", name), read)

    async def _secret(self, name: str) -> dict[str, bytes]:
        async def read() -> dict[str, bytes]:
            return dict((await self._client.get(SECRETS, name, self._pod.metadata.namespace)).data)

        return await self._once(("secrets", name), read)

    async def _once(self, key: tuple[str, str], read: Callable[[], Awaitable[dict[str, bytes]]]) -> dict[str, bytes]:
        if len(key[1]) > MOST_NAME:
            return {}
        if key not in self._read_objects:
            try:
                self._read_objects[key] = await read()
            except StatusError as error:
                if not is_not_found(error) and error.code != 403:
                    raise
                self._read_objects[key] = {}
        return self._read_objects[key]

    # Variables

    async def _services(self) -> AsyncGenerator[Service, None]:
        """Yield the Services of the pod's namespace, unless it disables service links, and that of the API server."""
        if self._pod.spec.enable_service_links is not False:
            left = _MOST_SERVICES
            async for each in self._client.iterate(SERVICES, self._pod.metadata.namespace, page=_SERVICES_AT_ONCE):
                yield each
                left -= 1
                if not left:
                    break
        kubernetes = await self._client.find(SERVICES, "kubernetes", "default")
        if kubernetes is not None:
            yield kubernetes

    async def variables(self) -> dict[str, str]:
        """Return the variables from Services, then `envFrom`, then `env`; those beyond a process's bounds
        are left out.
        """
        variables = Variables({})
        with contextlib.suppress(ArgumentsTooLong):
            await self._put_variables(variables)
        return variables

    async def _put_variables(self, found: Variables) -> None:
        async with contextlib.aclosing(self._services()) as services:
            async for service in services:
                async for name, text in time_sliced(service_variables(service)):
                    found.put(name, text)
        for source in self._container.env_from:
            values: dict[str, bytes] = {}
            if source.config_map_ref is not None:
                values = await self._config_map(source.config_map_ref.name)
            elif source.secret_ref is not None:
                values = await self._secret(source.secret_ref.name)
            async for key, data in time_sliced(values.items()):
                found.put(source.prefix + key, data.decode(errors="replace"))
        async for each in time_sliced(self._container.env):
            if each.value_from is None:
                is_long = len(each.value) > _FEW_CHARACTERS
                found.put(each.name, await offload_if(is_long, expanded, each.value, found))
            elif each.value_from.file_key_ref is not None:
                if each.name in self._file_variables:
                    found.put(each.name, self._file_variables[each.name])
            elif (value := await self._from(each.value_from)) is not None:
                found.put(each.name, value)

    async def _from(self, source: EnvVarSource) -> str | None:
        if source.field_ref is not None:
            return field_of(self._pod, source.field_ref)
        if source.resource_field_ref is not None:
            return resource_of(self._pod, self._container, source.resource_field_ref, self._allocatable)
        value: bytes | None = None
        if (at := source.config_map_key_ref) is not None:
            value = (await self._config_map(at.name)).get(at.key)
        elif (secret := source.secret_key_ref) is not None:
            value = (await self._secret(secret.name)).get(secret.key)
        return None if value is None else value.decode(errors="replace")

    # Files

    async def files(self) -> dict[str, bytes]:
        """Return the files of the container's volumes by absolute path."""
        volumes = {each.name: each for each in self._pod.spec.volumes}
        files_by_path: dict[str, bytes] = {}
        for mount in self._container.volume_mounts:
            volume = volumes.get(mount.name)
            if volume is None:
                continue
            contents = await self._contents(volume)
            if mount.sub_path:
                inside = posixpath.normpath(mount.sub_path)
                if inside in contents:
                    files_by_path[mount.mount_path] = contents[inside]
                contents = {
                    path[len(inside) + 1 :]: data for path, data in contents.items() if path.startswith(f"{inside}/")
                }
            for path, data in contents.items():
                files_by_path[posixpath.normpath(posixpath.join(mount.mount_path, path))] = data
        return files_by_path

    async def _contents(self, volume: Volume) -> dict[str, bytes]:
        if volume.config_map is not None:
            return _selected(await self._config_map(volume.config_map.name), volume.config_map.items)
        if volume.secret is not None:
            return _selected(await self._secret(volume.secret.secret_name), volume.secret.items)
        if volume.downward_api is not None:
            return self._downward(volume.downward_api.items)
        contents: dict[str, bytes] = {}
        if volume.projected is not None:
            for each in volume.projected.sources or ():
                contents.update(await self._projection(each))
        return contents

    async def _projection(self, source: VolumeProjection) -> dict[str, bytes]:
        if source.config_map is not None:
            return _selected(await self._config_map(source.config_map.name), source.config_map.items)
        if source.secret is not None:
            return _selected(await self._secret(source.secret.name), source.secret.items)
        if source.downward_api is not None:
            return self._downward(source.downward_api.items)
        if (token := source.service_account_token) is not None:
            if not self._tokens:
                return {}
            return {token.path: await self._token(token.audience, token.expiration_seconds or _TOKEN_SECONDS)}
        return {}

    def _downward(self, items: list[DownwardAPIVolumeFile]) -> dict[str, bytes]:
        contents: dict[str, bytes] = {}
        for each in items:
            if each.field_ref is not None:
                path = each.field_ref.field_path
                if path not in self._fields:
                    self._fields[path] = field_of(self._pod, each.field_ref).encode()
                contents[each.path] = self._fields[path]
            elif each.resource_field_ref is not None:
                contents[each.path] = resource_of(
                    self._pod, self._container, each.resource_field_ref, self._allocatable
                ).encode()
        return contents

    async def _token(self, audience: str, seconds: int) -> bytes:
        metadata = self._pod.metadata
        request = TokenRequest(
            spec=TokenRequestSpec(
                audiences=[audience] if audience else [],
                expiration_seconds=seconds,
                bound_object_ref=BoundObjectReference(
                    api_version="v1", kind="Pod", name=metadata.name, uid=metadata.uid
                ),
            )
        )
        try:
            made = await self._client.create_subresource(
                SERVICE_ACCOUNTS,
                self._pod.spec.service_account_name or "default",
                metadata.namespace,
                "token",
                TOKEN_REQUESTS,
                request,
            )
        except StatusError:
            return b""
        return made.status.token.encode()


def _selected(contents: dict[str, bytes], items: list[KeyToPath]) -> dict[str, bytes]:
    """Return the selected keys by their paths; all keys if `items` is empty."""
    if not items:
        return contents
    return {each.path: contents[each.key] for each in items if each.key in contents}

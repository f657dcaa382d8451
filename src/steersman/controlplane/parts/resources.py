"""Parts for the built-in resources and their dependencies."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

from steersman.controlplane.addresses import service_node_ports
from steersman.controlplane.options import Options
from steersman.controlplane.parts.basis import Common, Embedding, OutgoingRoutes, ValidatedFlags
from steersman.controlplane.parts.identity import Authorization, SigningKeys, Tokens
from steersman.controlplane.parts.storing import ObjectStores
from steersman.controlplane.resources import AGGREGATOR, API_EXTENSIONS, KUBE_API
from steersman.controlplane.runtime_config import RuntimeConfig
from steersman.net.client.own_server import ThisServer
from steersman.registry.kubelet import ADDRESS_TYPES, KubeletConnection, ProxyConnection
from steersman.registry.services import Services
from steersman.rest.bound import BoundResource, bind
from steersman.rest.capabilities import ResourceStorage
from steersman.rest.resource import Resource
from steersman.work.parts import Part, offered


class ResourceServices(Part):
    """The dependencies of resources."""

    options: Options
    embedding: Embedding
    common: Common
    flags: ValidatedFlags
    ways: OutgoingRoutes
    objects: ObjectStores
    signing: SigningKeys
    tokens: Tokens
    authorization: Authorization
    itself: ThisServer
    services: Services = offered()

    async def start(self, ending: AsyncExitStack) -> None:
        options, stores, egress = self.options, self.objects.stores, self.ways.egress
        keys, rights = self.signing.keys, self.authorization.chain.interfaces
        services = self.services = Services(
            objects=stores.objects,
            storage_of=stores.storage_of,
            authorizer=rights.authorizer,
            roles=rights.roles,
            rule_resolver=rights.rule_resolver,
            service_cluster_ip_ranges=self.flags.service_ranges,
            service_node_ports=service_node_ports(options),
            allow_privileged=options.allow_privileged,
            service_account_issuer=options.service_account_issuer[0],
            api_audiences=options.audiences,
            sign_token=keys.sign,
            max_token_expiration=keys.max_token_expiration,
            extend_token_expiration=options.service_account_extend_token_expiration,
            max_extended_token_expiration=keys.max_extended_token_expiration,
            event_ttl=options.event_ttl,
            authenticate_token=self.tokens.authenticator.authenticate_token,
            kubelet=KubeletConnection(
                address_types=options.kubelet_preferred_address_types or ADDRESS_TYPES,
                default_port=options.kubelet_port,
                client_certificate=options.kubelet_client_certificate,
                client_key=options.kubelet_client_key,
                certificate_authority=options.kubelet_certificate_authority,
                nearby=self.embedding.kubelets,
                leave=egress.cluster,
            ),
            proxied=ProxyConnection(self.embedding.nearby, egress.cluster),
            egress=egress,
            enable_aggregator_routing=options.enable_aggregator_routing,
            itself=self.itself,
            resource_of=self.common.mapper.plural_for,
            faults=self.embedding.faults,
        )
        ending.callback(services.proxied.close)
        ending.callback(services.kubelet.close)


class BuiltInResources(Part):
    """The built-in resources, each with its store: stable versions, and those that --runtime-config enables."""

    options: Options
    objects: ObjectStores
    resources: ResourceServices
    runtime: RuntimeConfig = offered()
    served: list[tuple[BoundResource[Any], ResourceStorage]] = offered()

    async def start(self, ending: AsyncExitStack) -> None:
        self.runtime = RuntimeConfig(self.options.runtime_config)
        bound = [bind(each, self.resources.services) for each in self._declared()]
        self.served = [(each, self.objects.stores.add(each)) for each in bound]

    def _declared(self) -> tuple[Resource[Any, Services], ...]:
        if not self.runtime.beyond_default:
            return (*AGGREGATOR, *KUBE_API, *API_EXTENSIONS)
        from steersman.controlplane import on_request  # which most servers never need

        return (*AGGREGATOR, *on_request.kube_api(self.runtime.serves), *API_EXTENSIONS)

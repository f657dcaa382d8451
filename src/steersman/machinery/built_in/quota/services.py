"""Usage of quotas by services: their number, node ports and load balancers."""

from __future__ import annotations

from steersman.api.core.v1 import Service
from steersman.machinery.built_in.pod_resources import Amounts
from steersman.machinery.built_in.quota.measure import ONE, Measure
from steersman.machinery.identity.schema import GroupResource
from steersman.machinery.values.quantity import Quantity


class ServiceMeasure(Measure[Service]):
    """The usage of quotas by services: their number, node ports and load balancers."""

    def __init__(self) -> None:
        super().__init__(GroupResource("", "services"))
        self.names = frozenset({self.count, "services", "services.nodeports", "services.loadbalancers"})

    def usage(self, obj: Service) -> Amounts:
        spec = obj.spec
        node_ports = 0
        if spec.type == "LoadBalancer" and spec.allocate_load_balancer_node_ports is False:
            node_ports = sum(1 for port in spec.ports if port.node_port)
        elif spec.type in ("NodePort", "LoadBalancer"):
            node_ports = len(spec.ports)
        return {
            self.count: ONE,
            "services": ONE,
            "services.nodeports": Quantity(node_ports),
            "services.loadbalancers": Quantity(int(spec.type == "LoadBalancer")),
        }

"""Our server with our controllers, on a socket: prints a line of JSON that says where, until it is interrupted.

Without controllers (`--controllers=`) kube-controller-manager can work on it, with the file `kubeconfig` beside the
authority's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
from ipaddress import ip_network

from steersman.authentication.user import UserInfo, service_account_groups, service_account_username
from steersman.client.client import Client
from steersman.client.in_process import InProcessTransport
from steersman.cluster.metrics import serve_metrics
from steersman.controllers.all import CONTROLLERS
from steersman.controllers.authority import Authority
from steersman.controllers.certificates.requests import SIGNERS
from steersman.controllers.controller import AutoscalingSettings, ClusterCIDR, Settings
from steersman.controllers.manager import ControllerManager
from steersman.nodes.load import Load
from steersman.nodes.usage import Usages
from steersman.testing.environment import Environment
from steersman.testing.users import ADMIN

MANAGER = "kube-controller-manager"


async def serve(names: set[str]) -> None:
    """Runs the controllers of these names."""
    stopped = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stopped.set)
    async with Environment(listen=True) as environment:
        server = environment.plane.server
        assert server is not None

        def client(user: UserInfo) -> Client:
            return Client(InProcessTransport(server.handler, environment.plane.token_of(user)), MANAGER)

        def of_account(name: str) -> Client:
            groups = service_account_groups("kube-system")
            return client(UserInfo(service_account_username("kube-system", name), groups=groups))

        chosen = [each for each in CONTROLLERS if each.name in names]
        authority = Authority(environment.ca, environment.ca.with_name("ca.key"), lasts=240 * 3600)
        settings = Settings(
            root_ca=environment.ca.read_text(),
            sign_token=environment.plane.sign_token,
            signers=dict.fromkeys(SIGNERS, authority),
            cluster_cidrs=[ClusterCIDR(ip_network("10.244.0.0/16"), 24)],
            autoscaling=AutoscalingSettings(sync_period=4, downscale_stabilization=8),
        )
        manager = ControllerManager(client(UserInfo(f"system:{MANAGER}")), of_account, settings, chosen)
        await manager.start()
        admin = client(UserInfo(ADMIN.name, groups=ADMIN.groups))
        await serve_metrics(environment.plane, admin, lambda: manager.informers, Usages(), Load())
        found = {"url": environment.url, "ca": str(environment.ca), "token": environment.token(ADMIN.name)}
        environment.kubeconfig().rename(environment.ca.parent / "kubeconfig")
        print(json.dumps(found), flush=True)
        await stopped.wait()
        await manager.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--controllers", required=True, help="their names, separated by commas")
    asyncio.run(serve(set(parser.parse_args().controllers.split(","))))


if __name__ == "__main__":
    main()

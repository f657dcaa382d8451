"""Servers on one etcd, for whoever compares or measures servers.

    python -m tools.one_etcd steersman,kubernetes [--flag=FLAG ...]

Starts an etcd, and on it a server for each name: `steersman serve` or kube-apiserver, with the same keys, the same
authority and the same flags, behind one address. Each connection is for the next server. Prints one JSON line when all
are ready, as bench/serve does: {"url", "ca", "token", "etcd", "urls"}, the last of each server's own, and stays until
SIGTERM. etcd and kube-apiserver are looked for in $STEERSMAN_REFERENCE and PATH.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.one_etcd.servers import ServersOnEtcd, names

TOKEN: Final = "admin-token"
_USERS: Final = (
    f'{TOKEN},admin,admin,"system:masters"',
    'alice-token,alice,alice,"dev"',
    'bob-token,bob,bob,""',
    'node-a-token,system:node:node-a,system:node:node-a,"system:nodes"',
)
_USUAL: Final = (
    "--authorization-mode=Node,RBAC",
    "--service-cluster-ip-range=10.0.0.0/24",
    "--allow-privileged=true",
    "--enable-aggregator-routing=true",
    "--disable-admission-plugins=ServiceAccount",
)
"""Flags of the servers, those of bench/reference. Without accounts the plugin ServiceAccount is off."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="one_etcd", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("servers", type=names, help="whose, such as steersman,steersman or steersman,kubernetes")
    parser.add_argument(
        "--flag",
        action="append",
        default=[],
        metavar="FLAG",
        help="one more flag of all, in place of the usual one of its name",
    )
    options = parser.parse_args(arguments)
    given = {flag.partition("=")[0] for flag in options.flag}
    flags = [*(flag for flag in _USUAL if flag.partition("=")[0] not in given), *options.flag]
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    with tempfile.TemporaryDirectory(prefix="steersman-one-etcd-") as folder:
        tokens = Path(folder) / "tokens.csv"
        tokens.write_text("".join(f"{user}\n" for user in _USERS))
        try:
            with ServersOnEtcd(Path(folder), options.servers, [*flags, f"--token-auth-file={tokens}"]) as all_of_them:
                urls = ["https://{}:{}".format(*each.address) for each in all_of_them.servers]
                print(
                    json.dumps(
                        {
                            "url": all_of_them.url,
                            "ca": str(all_of_them.files.ca),
                            "token": TOKEN,
                            "urls": urls,
                            "etcd": all_of_them.etcd_url,
                        }
                    ),
                    flush=True,
                )
                ended.wait()
        except LookupError as error:
            sys.exit(str(error))

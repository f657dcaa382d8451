"""Makes the same objects on kube-apiserver and on this server, and compares keys and values in their stores.

    python -m tools.stored_values [--media-type TYPE] [--on-request] [--keys FILE]

kube-apiserver and etcd are found in $STEERSMAN_REFERENCE or PATH. `--keys` records kube-apiserver's keys, each with
the form of its value. Ends with 1
if anything differs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from .comparison import differences, forms
from .filling import fill
from .servers import Ours, Reference, StoringServer, free_port


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.stored_values")
    parser.add_argument("--media-type", default="application/json", help="how both store built-in kinds")
    parser.add_argument("--on-request", action="store_true", help="the versions too that are off by default")
    parser.add_argument("--keys", type=Path, help="where to write kube-apiserver's keys and forms")
    parser.add_argument("--folder", type=Path, help="a folder for the two, which is kept")
    options = parser.parse_args()
    flags = [f"--storage-media-type={options.media_type}"]
    if options.on_request:
        flags.append("--runtime-config=api/all=true")
    with ExitStack() as ending:
        folder = options.folder or Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="stored-values-")))
        port = free_port()
        servers: tuple[StoringServer, StoringServer] = (
            Reference(folder / "reference", port, flags),
            Ours(folder / "ours", port, flags),
        )
        found = []
        for server in servers:
            with server:
                for refusal in fill(server.client, on_request=options.on_request):
                    print(f"{type(server).__name__} refuses {refusal}", file=sys.stderr)
                found.append(server.contents())
    theirs, ours = found
    if options.keys is not None:
        options.keys.write_text(json.dumps(forms(theirs), indent=1, sort_keys=True) + "\n")
    told = list(differences(theirs, ours))
    print(*told, sep="\n")
    print(f"{len(theirs)} keys of kube-apiserver, {len(ours)} of ours; {len(told)} differences")
    return bool(told)


if __name__ == "__main__":
    sys.exit(main())

"""Conformance to RFC 9113 (HTTP/2) and RFC 7541 (HPACK): h2spec's tests of a server.

    python -m tools.h2spec [--url URL] [-- ARGUMENT...]

Builds h2spec from the Go module in this folder, which pins its version, at the first time; that needs Go 1.26. Starts
`steersman serve` on a free port, unless the URL of a server is given, and runs all of its tests over TLS; it says what
fails. ARGUMENTs are h2spec's, such as `--strict`, or `http2/5.1` for a section. The exit code is h2spec's: 1 if a test
fails.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from steersman.testing import ServerProcess

HERE: Final = Path(__file__).resolve().parent
CACHE: Final = Path.home() / ".cache" / "steersman" / "h2spec"
PACKAGE: Final = "github.com/summerwind/h2spec/cmd/h2spec"
PATH: Final = "/livez"
"""Path of the requests: everybody may read it, and the answer has a body."""
_TIMEOUT: Final = 5
"""Seconds that h2spec waits for each answer."""


def version() -> str:
    """The version of h2spec that is pinned."""
    lines = (HERE / "go.mod").read_text().splitlines()
    module = PACKAGE.removesuffix("/cmd/h2spec")
    return next(line.split()[1] for line in lines if line.split()[:1] == [module])


def built() -> Path:
    """h2spec's program. Ends this one if it cannot be built."""
    program = CACHE / version()
    if not program.exists():
        go = shutil.which("go", path=f"{os.environ.get('PATH', '')}{os.pathsep}/usr/local/go/bin")
        if go is None:
            sys.exit("h2spec is built with Go: put it in PATH")
        CACHE.mkdir(parents=True, exist_ok=True)
        subprocess.run([go, "build", "-buildvcs=false", "-o", program, PACKAGE], cwd=HERE, check=True)
    return program


@contextlib.contextmanager
def server(url: str) -> Iterator[str]:
    """The URL of the server that is tested: the one given, or one that is started."""
    if url:
        yield url
        return
    with (
        tempfile.TemporaryDirectory(prefix="steersman-h2spec-") as folder,
        ServerProcess(Path(folder) / "data", "--storage=memory") as process,
    ):
        yield process.url


def main() -> int:
    """Runs the tests; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="", help="of a server that is running")
    parser.add_argument("argument", nargs="*")
    options = parser.parse_args()
    program = built()
    with server(options.url) as url:
        where = urlsplit(url)
        command = [str(program), "--tls", "--insecure", f"--timeout={_TIMEOUT}", f"--path={PATH}"]
        command += [f"--host={where.hostname}", f"--port={where.port or 443}", *options.argument]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

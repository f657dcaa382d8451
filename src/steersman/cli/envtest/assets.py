"""Folder with `kube-apiserver`, `etcd` and `kubectl` for test tools, in the user's cache.

The path is CACHE/steersman/envtest/VERSION-DIGEST/k8s/1.36.3-linux-amd64/. Tools in Java get CACHE/.../VERSION-DIGEST
and look for the rest; other tools get the whole path. The digest is that of the interpreter's and the package's path,
so that two environments with the same version have separate programs.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import sys
from hashlib import sha256
from pathlib import Path
from typing import Final

import steersman
from steersman.cli.envtest import etcd, kube_apiserver
from steersman.machinery.private_files import make_own_folder, write_whole
from steersman.server.version import MAJOR, MINOR, PATCH

_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_PACKAGE: Final = Path(steersman.__file__).resolve().parent

_SCRIPT: Final = """\
#!/bin/sh
# Made by `steersman envtest`, which writes it anew when it changes.
case "$#:${{1-}}" in
1:--help | 1:-h) exec cat <<'END'
{help}
END
;;
1:--version) exec cat <<'END'
{version}
END
;;
esac
exec {command} "$@"
"""
"""Script around a program. It answers --help and --version without an interpreter, as tools ask before every start."""

_KUBE_APISERVER: Final = (
    "import gc; gc.disable(); from steersman.cli.envtest.kube_apiserver import main; main({arguments})"
)
"""Runs without garbage collection, since objects of the start are long-lived. The server enables it when it is
ready.
"""


def cache_folder() -> Path:
    """Return `$XDG_CACHE_HOME`, by default `~/.cache`."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    return Path(given) if os.path.isabs(given) else Path.home() / ".cache"


def home_folder(nodes: int | None = None) -> Path:
    """Return the folder that tools in Java use; the programs are in `k8s/VERSION-SYSTEM-ARCHITECTURE` below it.

    Programs with controllers (`nodes` is not None) have a separate folder, and so has each number of nodes.
    """
    kind = "" if nodes is None else f"-cluster-{nodes}" if nodes else "-controllers"
    digest = sha256(os.fsencode(f"{sys.executable}\0{_PACKAGE}")).hexdigest()[:8]
    return cache_folder() / "steersman" / "envtest" / f"{steersman.__version__}-{digest}{kind}"


def programs_folder(home: Path) -> Path:
    """Return the folder of the programs below the home folder."""
    machine = platform.machine()
    name = f"{MAJOR}.{MINOR}.{PATCH}-{sys.platform}-{_ARCHITECTURES.get(machine, machine)}"
    return home / "k8s" / name


def make(home: Path, nodes: int | None = None) -> Path:
    """Create the programs unless they are up to date, and return their folder. Raises OSError.

    The server has no controllers if `nodes` is None; otherwise it has controllers and that number of nodes.
    """
    folder = programs_folder(home)
    make_own_folder(folder)  # must not belong to another user, who could replace the programs
    for name, content in _scripts(nodes).items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != content or not os.access(path, os.X_OK):
            write_whole(path, content, 0o755)
    _link_kubectl(folder / "kubectl")
    return folder


def _scripts(nodes: int | None) -> dict[str, bytes]:
    # -P: modules in the current folder of the tests must not shadow packages.
    code = _KUBE_APISERVER.format(arguments="" if nodes is None else f"nodes={nodes}")
    server = shlex.join([sys.executable, "-P", "-c", code])
    # -I -S: it only needs the standard library, and importing `site` takes as long as the rest of the start.
    beside = shlex.join([sys.executable, "-I", "-S", str(Path(etcd.__file__).resolve())])
    return {
        "kube-apiserver": _script(server, kube_apiserver.help_text(), kube_apiserver.version_line()),
        "etcd": _script(beside, etcd.help_text(), etcd.version_text()),
    }


def _script(command: str, help_text: str, version: str) -> bytes:
    return _SCRIPT.format(help=help_text.rstrip("\n"), version=version.rstrip("\n"), command=command).encode()


def _link_kubectl(link: Path) -> None:
    """Link the kubectl in PATH; do nothing if there is none, or only this link."""
    path = shutil.which("kubectl")
    target = Path(path).absolute() if path else None
    if target == link or (link.is_symlink() and (target is None or Path(os.readlink(link)) == target)):
        return
    if target is None:
        return
    temporary = link.with_name(f".kubectl.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(link)

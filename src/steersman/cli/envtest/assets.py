"""The folder with `kube-apiserver`, `etcd` and `kubectl` that tools find, in the user's cache.

CACHE/steersman/envtest/VERSION-DIGEST/k8s/1.36.3-linux-amd64/: below the first of these, tools in Java look for the
rest; others are told the whole. The digest is that of the interpreter and the sources, so that two environments with
the same version have programs of their own.
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
"""Tools ask for help, and wait for the answer, before every start: it comes without an interpreter."""

_KUBE_APISERVER: Final = (
    "import gc; gc.disable(); from steersman.cli.envtest.kube_apiserver import main; main({arguments})"
)
"""What is imported and made at the start stays: no collection needs to walk it. The server turns it on again."""


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME`, by default `~/.cache`."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    return Path(given) if os.path.isabs(given) else Path.home() / ".cache"


def home_folder(nodes: int | None = None) -> Path:
    """What tools in Java take for their home: the programs lie in `k8s/VERSION-SYSTEM-ARCHITECTURE` below it.

    Programs with controllers (`nodes` is not None) have a folder of their own, and so have those with nodes.
    """
    kind = "" if nodes is None else f"-cluster-{nodes}" if nodes else "-controllers"
    digest = sha256(os.fsencode(f"{sys.executable}\0{_PACKAGE}")).hexdigest()[:8]
    return cache_folder() / "steersman" / "envtest" / f"{steersman.__version__}-{digest}{kind}"


def programs_folder(home: Path) -> Path:
    """Where the programs lie below the home."""
    machine = platform.machine()
    name = f"{MAJOR}.{MINOR}.{PATCH}-{sys.platform}-{_ARCHITECTURES.get(machine, machine)}"
    return home / "k8s" / name


def make(home: Path, nodes: int | None = None) -> Path:
    """Makes the programs unless they are there as they should be; the folder they lie in. Raises OSError.

    The server's is one with controllers unless `nodes` is None, and with so many nodes.
    """
    folder = programs_folder(home)
    make_own_folder(folder)  # who owns it has their programs run by others
    for name, content in _scripts(nodes).items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != content or not os.access(path, os.X_OK):
            write_whole(path, content, 0o755)
    _link_kubectl(folder / "kubectl")
    return folder


def _scripts(nodes: int | None) -> dict[str, bytes]:
    # -P: what lies in the folder of the tests is not imported in place of a package.
    code = _KUBE_APISERVER.format(arguments="" if nodes is None else f"nodes={nodes}")
    server = shlex.join([sys.executable, "-P", "-c", code])
    # -I -S: nothing but Python's own modules is needed, and looking for more takes as long as the start.
    beside = shlex.join([sys.executable, "-I", "-S", str(Path(etcd.__file__).resolve())])
    return {
        "kube-apiserver": _script(server, kube_apiserver.help_text(), kube_apiserver.version_line()),
        "etcd": _script(beside, etcd.help_text(), etcd.version_text()),
    }


def _script(command: str, help_text: str, version: str) -> bytes:
    return _SCRIPT.format(help=help_text.rstrip("\n"), version=version.rstrip("\n"), command=command).encode()


def _link_kubectl(link: Path) -> None:
    """A link to the kubectl in PATH; none if there is none, or if only this one is."""
    found = shutil.which("kubectl")
    target = Path(found).absolute() if found else None
    if target == link or (link.is_symlink() and (target is None or Path(os.readlink(link)) == target)):
        return
    if target is None:
        return
    temporary = link.with_name(f".kubectl.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(link)

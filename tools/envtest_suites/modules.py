"""The Go modules whose tests are run, and how their sources are brought here."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from steersman.cli.envtest import assets

CACHE: Final = assets.cache_folder()
_USES: Final = re.compile(rb"\b(Environment|ControlPlane|APIServer|Etcd)\{|\b(test|environment)\.New(Environment)?\(")


@dataclass(frozen=True, slots=True)
class Module:
    """A module with tests that start a control plane, its version, and in how many processes Ginkgo runs each package.

    More than one is for packages whose specs mostly wait, as their own project runs them. `packages` are those that are
    run, by default all that `suites` finds.
    """

    name: str
    path: str
    version: str
    processes: int = 1
    packages: tuple[str, ...] = ()


MODULES: Final = (
    # the last release for Kubernetes 1.36
    Module("controller-runtime", "sigs.k8s.io/controller-runtime", "v0.24.1"),
    Module("karpenter", "sigs.k8s.io/karpenter", "v1.13.0"),
    Module("kro", "github.com/kubernetes-sigs/kro", "v0.9.4", 6, ("test/integration/suites/core",)),
    Module(
        "external-secrets",
        "github.com/external-secrets/external-secrets",
        "v0.16.2",
        packages=tuple(
            f"pkg/controllers/{each}"
            for each in (
                "clusterexternalsecret",
                "crds",
                "externalsecret",
                "pushsecret",
                "secretstore",
                "webhookconfig",
            )
        ),
    ),
)


def go() -> str:
    """The Go command. Ends the program if there is none."""
    path = shutil.which("go", path=f"{os.environ.get('PATH', '')}{os.pathsep}/usr/local/go/bin")
    return path or sys.exit("the tests are built with Go: put it in PATH")


def checked_out(module: Module) -> Path:
    """The module's files in a folder of their own, which can be written to."""
    folder = CACHE / "steersman" / "envtest-suites" / f"{module.name}-{module.version}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as empty:
            process = subprocess.run(
                [go(), "mod", "download", "-json", f"{module.path}@{module.version}"],
                cwd=empty,
                stdout=subprocess.PIPE,
                check=True,
            )
            copy = Path(empty) / "copy"
            shutil.copytree(json.loads(process.stdout)["Dir"], copy, copy_function=shutil.copyfile)
            for each in (copy, *copy.rglob("*")):
                each.chmod(0o755 if each.is_dir() or each.suffix == ".sh" else 0o644)
            copy.rename(folder)
    return folder


def suites(source: Path) -> list[str]:
    """The packages whose tests start a control plane."""
    users = (path for path in source.rglob("*_test.go") if _USES.search(path.read_bytes()))
    return sorted({path.parent.relative_to(source).as_posix() for path in users})


def built(source: Path, suite: str) -> Path | None:
    """The tests of a package as a program in its folder; None if they cannot be built, which the compiler tells."""
    program = source / suite / "suite.test"
    return program if program.exists() or _build(source, program, "test", "-c", f"./{suite}") else None


def ginkgo(source: Path) -> Path | None:
    """Ginkgo's command, in the version of the module; None if it cannot be built."""
    program = source / ".ginkgo"
    package = "github.com/onsi/ginkgo/v2/ginkgo"
    return program if program.exists() or _build(source, program, "build", package) else None


def _build(source: Path, program: Path, verb: str, *arguments: str) -> bool:
    *options, package = arguments
    command = [go(), verb, *options, "-buildvcs=false", "-o", str(program), package]
    return subprocess.run(command, cwd=source, check=False).returncode == 0

"""Programs of operators, built from what Go's module proxy and Python's package index serve."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from steersman.cli.envtest import assets

CACHE: Final = assets.cache_folder() / "steersman" / "known-bugs"
HERE: Final = Path(__file__).parent
KUBERNETES: Final = "k8s.io/kubernetes"


class Program(Protocol):
    """An operator in one version."""

    @property
    def version(self) -> str:
        """Version, for the table."""
        ...

    def command(self) -> str:
        """Return the line for `sh` that runs it; build it first if need be. Raises subprocess.CalledProcessError."""
        ...

    def definitions(self) -> list[Path]:
        """Return files with its definitions, once it is built."""
        ...


@dataclass(frozen=True, slots=True)
class GoModule:
    """A program that is the main package of a Go module."""

    name: str
    path: str
    version: str
    flags: str = ""
    environment: str = ""
    """Assignments of variables before the command."""

    @property
    def _folder(self) -> Path:
        return CACHE / f"{self.name}-{self.version}"

    def command(self) -> str:
        """Return the command."""
        if not (program := self._folder / self.name).exists():
            source = _downloaded(self.path, self.version, self._folder)
            _run([go(), "build", "-mod=mod", "-buildvcs=false", "-o", str(program), "."], source)
        return f"{self.environment} exec {program} {self.flags}".strip()

    def definitions(self) -> list[Path]:
        """Return the definitions in the module."""
        return sorted((self._folder / "source" / "config" / "crd" / "bases").glob("*.yaml"))


@dataclass(frozen=True, slots=True)
class GoPackages:
    """A program with packages of a Go module, whose main package is the file `main.go` in a folder of this one."""

    name: str
    path: str
    version: str
    crds: str = ""
    """Folder of definitions in the module."""

    @property
    def _folder(self) -> Path:
        return CACHE / f"{self.name}-{self.version}"

    def command(self) -> str:
        """Return the command."""
        folder = self._folder
        if not (program := folder / self.name).exists():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "go.mod").write_text(self._requirements())
            shutil.copyfile(HERE / self.name / "main.go", folder / "main.go")
            _run([go(), "mod", "tidy"], folder)
            _run([go(), "build", "-buildvcs=false", "-o", str(program), "."], folder)
        return f"exec {program}"

    def definitions(self) -> list[Path]:
        """Return the definitions in the module, without lines that only Helm understands."""
        if not self.crds:
            return []
        found = []
        for each in sorted((_module(self.path, self.version, "Dir") / self.crds).glob("*.yaml")):
            plain = "".join(line for line in each.read_text().splitlines(keepends=True) if "{{" not in line)
            found.append(self._folder / each.name)
            found[-1].write_text(plain)
        return found

    def _requirements(self) -> str:
        """Return a go.mod; modules that lie in the repository of Kubernetes itself have the version of Kubernetes."""
        plain = json.loads(_output([go(), "mod", "edit", "-json", str(_module(self.path, self.version, "GoMod"))]))
        replaced = plain.get("Replace") or []
        staged = [each["Old"]["Path"] for each in replaced if each["New"]["Path"].startswith("./staging/")]
        version = self.version.replace("v1.", "v0.")
        replacements = "".join(f"replace {each} => {each} {version}\n" for each in staged)
        return f"module controller\n\ngo 1.18\n\nrequire {self.path} {self.version}\n\n{replacements}"


@dataclass(frozen=True, slots=True)
class PythonPackage:
    """A module of handlers for kopf, in a package of Python's index."""

    package: str
    version: str
    module: str
    files: tuple[Path, ...] = ()
    """Definitions; those of the package may not be valid."""

    def command(self) -> str:
        """Return the command."""
        folder = CACHE / f"{self.package}-{self.version}"
        if not (installed := folder / "installed").exists():
            _run([sys.executable, "-m", "venv", "--clear", str(folder)])
            _run([str(folder / "bin" / "pip"), "install", "--quiet", f"{self.package}=={self.version}"])
            installed.touch()
        return f"exec {folder / 'bin' / 'kopf'} run --quiet --all-namespaces -m {self.module}"

    def definitions(self) -> list[Path]:
        """Return the definitions."""
        return list(self.files)


@dataclass(frozen=True, slots=True)
class SmallOperator:
    """An operator of `tests/stress`, with a bug or its repair."""

    name: str
    version: str
    flags: str = ""

    def command(self) -> str:
        """Return the command."""
        return f"exec {sys.executable} -m tests.stress.{self.name}_operator {self.flags}".rstrip()

    def definitions(self) -> list[Path]:
        """Return nothing."""
        return []


def go() -> str:
    """Return the Go command. Ends the program if there is none."""
    path = shutil.which("go", path=f"{os.environ.get('PATH', '')}{os.pathsep}/usr/local/go/bin")
    return path or sys.exit("operators are built with Go: put it in PATH")


def _downloaded(path: str, version: str, folder: Path) -> Path:
    """Return a module's files in a folder of their own, which can be written to."""
    source = folder / "source"
    if not source.exists():
        partial = folder / "partial"
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(_module(path, version, "Dir"), partial, copy_function=shutil.copyfile)
        for each in (partial, *partial.rglob("*")):
            each.chmod(0o755 if each.is_dir() else 0o644)
        partial.rename(source)
    return source


def _module(path: str, version: str, member: str) -> Path:
    """Return a path of a module that Go has downloaded."""
    with tempfile.TemporaryDirectory() as empty:
        return Path(json.loads(_output([go(), "mod", "download", "-json", f"{path}@{version}"], Path(empty)))[member])


def _run(command: Sequence[str], folder: Path | None = None) -> None:
    subprocess.run(command, cwd=folder, check=True)


def _output(command: Sequence[str], folder: Path | None = None) -> str:
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout

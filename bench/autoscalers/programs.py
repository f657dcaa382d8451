"""Programs of published autoscalers: found in a folder, or built from their Go modules."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
PROGRAMS: Final = Path(os.environ.get("STEERSMAN_AUTOSCALERS") or CACHE / "steersman-autoscalers")
KARPENTER: Final = "sigs.k8s.io/karpenter@v1.14.1"
_PACKAGES: Final[Mapping[str, str]] = {"karpenter": "kwok", "dra-kwok-driver": "dra-kwok-driver"}
"""Package of each program in Karpenter's module."""
VERTICAL: Final = "k8s.io/autoscaler/vertical-pod-autoscaler@v1.8.1"
CLUSTER_AUTOSCALER: Final = "cluster-autoscaler-1.36.1"
"""Tag of kubernetes/autoscaler with the cluster-autoscaler. Its module is not published, so it is not built here."""
_SOURCES: Final[Mapping[str, str]] = {
    "cluster-autoscaler": f"kubernetes/autoscaler, tag {CLUSTER_AUTOSCALER}",
    "vpa-recommender": f"the package pkg/recommender of the module {VERTICAL}",
}
"""Sources of programs that are not built here, as that takes long, or as their module is not published."""
_PATIENCE: Final = 240.0
"""Seconds for a download or a build."""


class NoProgram(Exception):
    """A program is not there and cannot be built. The text has the reason."""


def program(name: str) -> Path:
    """Return the path of a program, after building it if that is needed and possible. Raises NoProgram."""
    found = PROGRAMS / name
    if found.exists():
        return found
    if name not in _PACKAGES:
        source = _SOURCES.get(name)
        raise NoProgram(f"no {name} in {PROGRAMS}" + (f": build it there from {source}" if source else ""))
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    made = PROGRAMS / f"{name}.{os.getpid()}"
    _go("build", "-ldflags=-s -w", "-o", str(made), f"./{_PACKAGES[name]}", folder=karpenter_module())
    made.replace(found)
    return found


def karpenter_module() -> Path:
    """Return the folder of Karpenter's module, after downloading it if needed. Raises NoProgram."""
    return _module(KARPENTER)


def definitions() -> list[Path]:
    """Return the files with Karpenter's custom resource definitions. Raises NoProgram."""
    module = karpenter_module()
    return sorted([*(module / "kwok/charts/crds").glob("*.yaml"), *(module / "kwok/apis/crds").glob("*.yaml")])


def vertical_definitions() -> Path:
    """Return the file with the definitions of VerticalPodAutoscaler and its checkpoints. Raises NoProgram."""
    return _module(VERTICAL) / "deploy" / "vpa-v1-crd-gen.yaml"


def _module(name: str) -> Path:
    """Return the folder of a module, after downloading it if needed. Raises NoProgram."""
    document = json.loads(_go("mod", "download", "-json", name, folder=Path.home()))
    return Path(document["Dir"])


def _go(*arguments: str, folder: Path) -> str:
    go = shutil.which(os.environ.get("GO") or "go") or shutil.which("/usr/local/go/bin/go")
    if go is None:
        raise NoProgram("no Go on this machine: put it in PATH, or name it in $GO")
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false", "GOTOOLCHAIN": "local"}
    try:
        done = subprocess.run(
            [go, *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired as error:  # Go keeps compiled packages, so that the next attempt is shorter
        raise NoProgram(f"go {arguments[0]} took more than {_PATIENCE:.0f} s: try again") from error
    if done.returncode != 0:
        raise NoProgram(f"go {arguments[0]}: {done.stderr.strip()[-500:] or 'failed'}")
    return done.stdout

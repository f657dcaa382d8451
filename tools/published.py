"""Objects that projects publish in their Go modules: in files and in charts.

`go mod download` fetches a module, `helm template` renders its charts where there is a Helm; nothing of either is kept.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

_LARGEST: Final = 8 << 20
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Body = dict[str, Any]


def folder_of(source: str) -> Path:
    """Return the folder of a Go module (MODULE@VERSION), or a given folder. Raises CalledProcessError."""
    if "@" not in source:
        return Path(source)
    process = subprocess.run(["go", "mod", "download", "-json", source], capture_output=True, text=True, check=True)
    return Path(json.loads(process.stdout)["Dir"])


def files_of(folder: Path, mark: bytes) -> Iterator[tuple[Path, bytes]]:
    """The YAML files that have `mark` in them and are no templates; what tests of a project are given is left out."""
    for file in sorted(folder.rglob("*.yaml")):
        if "testdata" in file.parts or not file.is_file() or file.stat().st_size > _LARGEST:
            continue
        text = file.read_bytes()
        if mark in text and b"{{" not in text.replace(b"`{{", b""):
            yield file, text


def charts_of(folder: Path, mark: bytes) -> Iterator[tuple[Path, bytes]]:
    """Yield the rendered charts with their default values; none without Helm ($STEERSMAN_HELM, or in PATH).

    A chart that cannot be rendered is left out.
    """
    helm = os.environ.get("STEERSMAN_HELM") or shutil.which("helm")
    for chart in sorted(folder.rglob("Chart.yaml")) if helm else ():
        if not any(mark in file.read_bytes() for file in chart.parent.rglob("*") if file.is_file()):
            continue
        command = [str(helm), "template", "published", str(chart.parent), "--include-crds"]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode == 0:
            yield chart, done.stdout


def documents(text: bytes) -> Iterator[Body]:
    """The objects in a text, those in lists too; none if it is no YAML."""
    try:
        found = list(yaml.load_all(text, Loader=_LOADER))
    except yaml.YAMLError:
        return  # a template
    for each in found:
        if isinstance(each, dict) and isinstance(each.get("kind"), str) and isinstance(each.get("apiVersion"), str):
            inner = each.get("items") if each["kind"].endswith("List") else None
            for one in inner if isinstance(inner, list) else [each]:
                if isinstance(one, dict) and isinstance(one.get("metadata"), dict):
                    yield json.loads(json.dumps(one, default=str))

"""The judge of linearizability: porcupine, in a program of Go that is built when it is needed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).resolve().parent / "judge"
_CACHE: Final = Path.home() / ".cache" / "steersman" / "chaos-judge"


@dataclass(frozen=True)
class Verdict:
    """Verdict on a history; the lists hold keys, and files that draw the violations."""

    keys: int
    operations: int
    unknown: int
    wrong: list[str]
    undecided: list[str]
    pictures: list[str]


def built() -> Path:
    """The program. Ends this one if it cannot be built."""
    sources = b"".join((_HERE / name).read_bytes() for name in ("main.go", "go.mod", "go.sum"))
    built = _CACHE / hashlib.sha256(sources).hexdigest()[:16]
    if not built.exists():
        go = shutil.which("go", path=f"{os.environ.get('PATH', '')}{os.pathsep}/usr/local/go/bin")
        if go is None:
            sys.exit("the judge is built with Go: put it in PATH")
        _CACHE.mkdir(parents=True, exist_ok=True)
        subprocess.run([go, "build", "-buildvcs=false", "-o", built, "."], cwd=_HERE, check=True)
    return built


def judge(program: Path, history: Path, pictures: Path, seconds: float = 60.0) -> Verdict:
    """Raises CalledProcessError if it cannot read the history. `seconds` are for one object."""
    done = subprocess.run(
        [program, f"-seconds={seconds}", f"-pictures={pictures}", history], stdout=subprocess.PIPE, check=True
    )
    return Verdict(**json.loads(done.stdout))

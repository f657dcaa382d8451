#!/usr/bin/env python3
"""Run commands in a shell and draw the terminal as an SVG: text as it appeared, with the real pauses shortened.

    python -m tools.terminal_picture        # writes docs/images/first-minute.svg; needs kubectl, and port 6443 free

Viewers that animate SVG show line after line; others show the last state. Paths of this machine's home are shown as `~`.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

ROOT: Final = Path(__file__).resolve().parent.parent
OUTPUT: Final = ROOT / "docs/images/first-minute.svg"
COMMANDS: Final = (
    "steersman up --nodes 3 --detach",
    "export KUBECONFIG=~/.local/state/steersman/admin.kubeconfig",
    "kubectl create deployment web --image=nginx --replicas=30",
    "kubectl rollout status deployment/web | tail -1",
    "kubectl get pods -o custom-columns=NAME:.metadata.name,PHASE:.status.phase,NODE:.spec.nodeName | head -4",
    "kubectl drain node-0 --ignore-daemonsets | tail -1",
    "kubectl get nodes",
    "steersman down",
)
_COLUMNS: Final = 106
_WIDTH, _HEIGHT = 8.4, 20
"""Size of a character in pixels."""
_LONGEST_PAUSE: Final = 1.2
"""Seconds to which a pause is shortened."""
_TYPING: Final = 0.9
"""Seconds between the end of a command's output and the next command."""


@dataclass(frozen=True)
class Line:
    """A line of the terminal, and the seconds after which it appears."""

    text: str
    at: float

    @property
    def is_command(self) -> bool:
        """True for a line that was typed."""
        return self.text.startswith("$ ")


def record(commands: Sequence[str], home: Path) -> list[Line]:
    """Run the commands in one shell with an empty home folder. Raises CalledProcessError if one of them fails."""
    environ = {**os.environ, "HOME": str(home), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environ = {name: value for name, value in environ.items() if not name.startswith(("XDG_", "KUBE"))}
    lines: list[Line] = []
    at, exports = 0.0, ""
    for command in commands:
        lines.append(Line(f"$ {command}"[:_COLUMNS], at))
        began = time.monotonic()
        shell = ["bash", "-c", exports + command]
        done = subprocess.run(shell, env=environ, cwd=home, capture_output=True, text=True, check=True)
        at += min(time.monotonic() - began, _LONGEST_PAUSE)
        if command.startswith("export "):
            exports += command + "\n"
        for text in done.stdout.splitlines():
            shown = re.sub(r"\s(url|ca|log)=\S+", "", text.replace(str(home), "~")).rstrip()
            lines.append(Line(shown[:_COLUMNS], at))
        at += _TYPING
    return lines


def drawn(lines: Sequence[Line]) -> str:
    """Return an SVG of the lines in a terminal window."""
    width, height = _COLUMNS * _WIDTH + 32, len(lines) * _HEIGHT + 56
    end = lines[-1].at + 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}" '
        'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14">',
        f'<rect width="{width:.0f}" height="{height}" rx="8" fill="#1b1f27"/>',
        *(
            f'<circle cx="{20 + 20 * n}" cy="18" r="6" fill="{c}"/>'
            for n, c in enumerate(("#ff5f56", "#ffbd2e", "#27c93f"))
        ),
    ]
    for number, line in enumerate(lines):
        color = "#ffffff" if line.is_command else "#b5bfd0"
        appears = max(line.at / end, 0.0001)
        parts.append(
            f'<text x="16" y="{52 + number * _HEIGHT}" fill="{color}" xml:space="preserve">{escape(line.text)}'
            f'<animate attributeName="opacity" values="0;0;1;1" keyTimes="0;{appears:.4f};{appears:.4f};1" '
            f'dur="{end:.1f}s" fill="freeze"/></text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def main() -> None:
    """Record the commands and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            lines = record(COMMANDS, Path(folder))
        finally:
            program = Path(sys.executable).with_name("steersman")
            subprocess.run([program, "down", "--data-dir", f"{folder}/.local/state/steersman"], capture_output=True)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(drawn(lines))
    print(options.output)


if __name__ == "__main__":
    main()

"""Known vulnerabilities of the locked packages, by pip-audit.

    python -m tools.vulnerabilities [requirements.lock]

Exit code 1 if a vulnerability is known. Without a network, or behind an index that has no such data, it says that
nothing was looked at, and why, and ends with 0.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
_FLAGS: Final = ("--require-hashes", "--disable-pip", "--progress-spinner=off", "--format=json", "--timeout=30")


@dataclass(frozen=True)
class Found:
    """Result of an audit: packages looked at, packages left out with the reason, and known vulnerabilities."""

    looked_at: int
    skipped: tuple[str, ...]
    known: tuple[str, ...]

    @property
    def text(self) -> str:
        """For people."""
        lines = [f"{self.looked_at} packages looked at, {len(self.known)} with known vulnerabilities"]
        if self.skipped:
            lines.append(f"{len(self.skipped)} packages NOT looked at: {self.skipped[0]}")
        return "\n".join([*lines, *self.known])


def found_in(report: Any) -> Found:
    """Return the result in a report of pip-audit."""
    dependencies = report["dependencies"]
    known = tuple(
        f"{each['name']} {each['version']}: {', '.join(one['id'] for one in each['vulns'])}"
        for each in dependencies
        if each.get("vulns")
    )
    skipped = tuple(each["skip_reason"] for each in dependencies if "skip_reason" in each)
    return Found(len(dependencies) - len(skipped), skipped, known)


def audited(lock: Path) -> Found:
    """Runs pip-audit, which is in the dependency group `supply`."""
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(lock), *_FLAGS]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        return found_in(json.loads(ran.stdout))
    except ValueError:  # no report: the data could not be had
        said = ran.stderr.strip().splitlines()
        return Found(0, (said[-1] if said else f"pip-audit ended with {ran.returncode}",), ())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="vulnerabilities", description="Look for known vulnerabilities.")
    parser.add_argument("lock", nargs="?", type=Path, default=ROOT / "requirements.lock")
    found = audited(parser.parse_args(arguments).lock)
    print(found.text)
    return 1 if found.known else 0


if __name__ == "__main__":
    sys.exit(main())

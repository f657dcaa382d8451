"""The command: which targets, and for how long."""

from __future__ import annotations

import argparse
import logging
import warnings
from collections.abc import Sequence
from pathlib import Path

from .runner import Finding, Run, fuzz
from .targets import TARGETS


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="fuzz", description="Fuzz what reads what clients send.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(each.name for each in TARGETS)}")
    parser.add_argument("--seconds", type=float, default=300, help="for all of them together (default: 300)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where findings are written (default: nowhere)")
    options = parser.parse_args(arguments)
    unknown = {*options.targets} - {each.name for each in TARGETS}
    if unknown:
        parser.error(f"unknown targets: {', '.join(sorted(unknown))}")
    chosen = [each for each in TARGETS if each.name in options.targets or not options.targets]
    findings = 0
    logging.disable(logging.CRITICAL)  # what readers warn of
    try:
        for target in chosen:
            with warnings.catch_warnings(action="ignore"):
                run = fuzz(target, options.seconds / len(chosen), options.seed)
            print(run, flush=True)
            findings += len(run.findings)
            _tell(run, options.keep)
    finally:
        logging.disable(logging.NOTSET)
    return 1 if findings else 0


def _tell(run: Run, folder: Path | None) -> None:
    for found in run.findings.values():
        print(f"  {found.what}\n  {found.data[:500]!r}", flush=True)
        if folder is not None:
            keep(found, folder)


def keep(found: Finding, folder: Path) -> None:
    """Writes the input of a finding where it can be tried again."""
    place = folder / found.target
    place.mkdir(parents=True, exist_ok=True)
    (place / found.file_name).write_bytes(found.data)

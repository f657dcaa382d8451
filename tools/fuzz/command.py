"""The command: which targets, for how long, with which engine."""

from __future__ import annotations

import argparse
import logging
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from .runner import Finding, Run, fuzz, judge
from .target import Target
from .targets import TARGETS


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="fuzz", description="Fuzz what reads what clients send.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(each.name for each in TARGETS)}")
    parser.add_argument("--seconds", type=float, default=300, help="for all of them together (default: 300)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=("own", "atheris"), default="own", help="atheris takes one target")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where findings are written (default: nowhere)")
    options = parser.parse_args(arguments)
    unknown = {*options.targets} - {each.name for each in TARGETS}
    if unknown:
        parser.error(f"unknown targets: {', '.join(sorted(unknown))}")
    chosen = [each for each in TARGETS if each.name in options.targets or not options.targets]
    if options.engine == "atheris":
        if len(chosen) != 1:
            parser.error("atheris takes one target")
        return with_atheris(chosen[0], options.seconds, options.seed)
    logging.disable(logging.CRITICAL)  # what readers warn of
    warnings.simplefilter("ignore")
    findings = 0
    for target in chosen:
        run = fuzz(target, options.seconds / len(chosen), options.seed)
        print(run, flush=True)
        findings += len(run.findings)
        _tell(run, options.keep)
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


def with_atheris(target: Target, seconds: float, seed: int) -> int:
    """The same guided by coverage. libFuzzer ends the process: at the first finding with a code other than 0."""
    import atheris

    def once(data: bytes) -> None:
        run = Run(target)
        judge(run, data)
        for found in run.findings.values():
            raise RuntimeError(found.what)

    for module in [each for name, each in sys.modules.items() if name.startswith("steersman.")]:
        for name, value in list(vars(module).items()):
            if getattr(value, "__module__", "") == module.__name__ and callable(value) and hasattr(value, "__code__"):
                setattr(module, name, atheris.instrument_func(value))
    flags = [f"-max_total_time={int(seconds)}", f"-seed={seed}", f"-max_len={target.most}", "-rss_limit_mb=2048"]
    atheris.Setup([sys.argv[0], *flags, str(target.folder)], once)
    atheris.Fuzz()
    return 0

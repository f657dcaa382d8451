"""One target guided by the coverage of its code: `python -m tools.fuzz.guided TARGET`. Needs atheris.

libFuzzer ends the process, with another code than 0 at the first finding; its input is then in the present folder.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import warnings
from collections.abc import Sequence

import atheris

with atheris.instrument_imports(include=["steersman"]):
    from steersman.machinery.large_work.nesting import raise_recursion_limit
    from tools.fuzz.targets import TARGETS

from tools.fuzz.runner import Run, judge


def main(arguments: Sequence[str] | None = None) -> None:
    """Does not return."""
    parser = argparse.ArgumentParser(prog="guided", description="Fuzz one target guided by coverage.")
    parser.add_argument("target", choices=[each.name for each in TARGETS])
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    target = next(each for each in TARGETS if each.name == options.target)
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")

    raise_recursion_limit()

    def once(data: bytes) -> None:
        run = Run(target)
        judge(run, data)
        for found in run.findings.values():
            raise RuntimeError(found.what)

    flags = [f"-max_total_time={options.seconds}", f"-seed={options.seed}", f"-max_len={target.most}"]
    with tempfile.TemporaryDirectory() as made:  # what is new goes to the first folder
        atheris.Setup([sys.argv[0], *flags, made, str(target.folder)], once)
        atheris.Fuzz()


if __name__ == "__main__":
    main()

"""Published operators' tests with the least role that `steersman report` finds for them.

    python -m tools.envtest_suites.least_role --module external-secrets --suite pkg/controllers/pushsecret

Each suite is run three times through the programs of `steersman envtest`: with all rights, while its requests are recorded;
with a role of the rights that they used, and no others; and with that role without its largest rule, which shows that rights
count. A table tells of all. Exit code 1 if a suite fails under its least role and not with all rights, or passes without
a rule of it.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from steersman.cli.envtest import assets
from steersman.cli.envtest.kube_apiserver import ROLE
from steersman.machinery.codec.yaml import from_json
from steersman.report.recording import VARIABLE, recorded_requests
from steersman.report.report import Report
from tools.envtest_suites.command import Specs, ran
from tools.envtest_suites.modules import MODULES, Module, checked_out, suites
from tools.envtest_suites.report import Run, differences

HEADS: Final = ("suite", "all rights", "requests", "rules", "rights", "least role", "refused", "without a rule")


def rights_in(role: dict[str, Any]) -> int:
    """Return the number of pairs of verb and resource, or path, that a role grants."""
    return sum(map(_rights_of, role["rules"]))


def _rights_of(rule: dict[str, Any]) -> int:
    return len(rule["verbs"]) * len(rule.get("resources") or rule.get("nonResourceURLs") or ())


def without_a_rule(role: dict[str, Any]) -> dict[str, Any]:
    """Return a role without the rule that grants the most rights."""
    less = copy.deepcopy(role)
    less["rules"].remove(max(less["rules"], key=_rights_of))
    return less


def verified(module: Module, source: Path, suite: str, specs: Specs) -> tuple[tuple[str, ...], bool] | None:
    """Run a suite with all rights, its least role, and less; return its row and whether it is as it should be.

    None if it cannot be built.
    """
    programs = [assets.make(assets.home_folder())]
    with tempfile.TemporaryDirectory(prefix="least-role-") as folder:
        runs: list[Run] = []
        reports: list[Report] = []
        role: dict[str, Any] = {}
        for number in range(3):
            variables = {VARIABLE: f"{folder}/requests-{number}"}
            if number:
                file = Path(folder) / f"role-{number}.yaml"
                file.write_bytes(from_json(json.dumps(role if number == 1 else without_a_rule(role)).encode()))
                variables[ROLE] = str(file)
            found = ran(source, suite, 1, specs, programs, variables)  # kro's names groups after the process of a spec
            if not found:
                return None
            runs += found
            reports.append(Report(recorded_requests(Path(variables[VARIABLE]))))
            print(f"{module.name} {suite}: {found[0]}", file=sys.stderr, flush=True)
            role = role or reports[0].role()
    refused = sum(each.codes[403] for each in reports[1].clients)
    row = (
        f"{module.name} {suite}",
        str(runs[0]),
        str(reports[0].count()),
        str(len(role["rules"])),
        str(rights_in(role)),
        str(runs[1]),
        str(refused),
        str(runs[2]),
    )
    return row, not differences(runs[1], runs[0]) and bool(differences(runs[2], runs[0]))


def main() -> int:
    """Print the table; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [each.name for each in MODULES]
    parser.add_argument("--module", action="append", choices=names, help="by default all")
    parser.add_argument("--suite", action="append", help="a package, such as pkg/client; by default all")
    parser.add_argument("--focus", help="only specs whose names match")
    parser.add_argument("--skip", help="no specs whose names match")
    parser.add_argument("--timeout", type=int, default=10, metavar="MINUTES", help="of a suite")
    options = parser.parse_args()
    specs = Specs(options.focus, options.skip, options.timeout)
    print(f"| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}")
    is_good = True
    for module in (each for each in MODULES if each.name in (options.module or names)):
        source = checked_out(module)
        there = module.packages or suites(source)
        for suite in (each for each in options.suite or there if each in there):
            found = verified(module, source, suite, specs)
            if found is not None:
                print(f"| {' | '.join(found[0])} |", flush=True)
                is_good = is_good and found[1]
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())

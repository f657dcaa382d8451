"""Writes src/steersman/api anew from the facts about Kubernetes' Go types.

The folder with types.json, discovery.json and openapi-v2.json is the environment's FACTS, or ../shared/facts.
What is served only on request is read from generate/v2_on_request.json.gz, which generate_openapi.py writes.
The output depends on the facts alone.
"""

import os
import shutil
import sys
from pathlib import Path

from tools.generate import facts as facts_of
from tools.generate import modules, tables
from tools.generate.facts import SPECIAL, UNIONS
from tools.generate.naming import class_of, module_of

ROOT = Path(__file__).resolve().parent.parent
ON_REQUEST = ROOT / "tools/generate/v2_on_request.json.gz"
HAND_WRITTEN = {"__init__.py", "scalars.py", "tables.py", "__pycache__"}


def main() -> None:
    """Removes what was generated before, and writes it anew."""
    folder = Path(os.environ.get("FACTS", ROOT.parent / "shared" / "facts"))
    if not (folder / "types.json").is_file():
        sys.exit(f"no types.json in {folder}: set FACTS to the folder that has it")
    facts = facts_of.read(folder, ON_REQUEST)
    out = ROOT / "src" / "steersman" / "api"
    for old in out.iterdir():
        if old.name not in HAND_WRITTEN:
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    names = {module_of(name) for name in facts.structs if name not in SPECIAL and class_of(name) not in UNIONS}
    for name in sorted(names):
        package, version = name.split(".")
        (out / package).mkdir(exist_ok=True)
        (out / package / "__init__.py").write_text(f'{modules.HEADER}\n"""The versions of {package}."""\n')
        (out / package / f"{version}.py").write_text(modules.ModuleWriter(facts, name).text())
        (out / package / f"{version}.json").write_text(tables.table(facts, name))
    (out / "index.py").write_text(modules.index(facts))


if __name__ == "__main__":
    main()

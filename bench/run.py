"""Runs the micro benchmarks of this folder one after the other: `python -m bench.run [PART OF A NAME]`.

Figures of a whole server come from `bench/table.py`; see docs/performance.md.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def main() -> int:
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    for script in sorted(Path(__file__).parent.glob("*_micro.py")):
        if wanted in script.name:
            print(f"== {script.stem}", flush=True)
            code = subprocess.run([sys.executable, str(script)], check=False).returncode
            if code:
                return code
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m tools.stage_comparison`."""

import sys

from tools.stage_comparison.command import main

if __name__ == "__main__":
    sys.exit(main())

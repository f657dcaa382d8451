"""`python -m tools.scheduler_comparison`."""

import sys

from tools.scheduler_comparison.command import main

if __name__ == "__main__":
    sys.exit(main())

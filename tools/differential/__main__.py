"""`python -m tools.differential`."""

import sys

from tools.differential.command import main

if __name__ == "__main__":
    sys.exit(main())

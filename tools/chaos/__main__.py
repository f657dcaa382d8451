"""`python -m tools.chaos`."""

import sys

from tools.chaos.command import main

if __name__ == "__main__":
    sys.exit(main())

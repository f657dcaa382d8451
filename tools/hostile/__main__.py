"""`python -m tools.hostile`."""

import sys

from tools.hostile.command import main

if __name__ == "__main__":
    sys.exit(main())

"""`python -m tools.compare_schemas`."""

import sys

from tools.compare_schemas.command import main

if __name__ == "__main__":
    sys.exit(main())

"""`python -m tools.controllers`."""

import sys

from tools.controllers.command import main

if __name__ == "__main__":
    sys.exit(main())

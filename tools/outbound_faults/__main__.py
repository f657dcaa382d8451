"""`python -m tools.outbound_faults`."""

import sys

from tools.outbound_faults.command import main

if __name__ == "__main__":
    sys.exit(main())

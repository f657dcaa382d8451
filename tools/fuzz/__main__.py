"""python -m tools.fuzz"""

import sys

from .command import main

sys.exit(main())

"""python -m tools.openapi_fuzz"""

import sys

from .command import main

sys.exit(main())

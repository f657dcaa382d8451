"""Runs the command."""

import sys

from tools.envtest_suites.command import main

sys.exit(main())

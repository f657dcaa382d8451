"""Runs the command."""

import sys

from tools.known_bugs.command import main

sys.exit(main())

"""Runs the command."""

import sys

from tools.aggregated_server.command import main

sys.exit(main())

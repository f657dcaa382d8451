"""`python -m examples.flunders FOLDER [PORT]` serves flunders and fischers."""

import argparse

from examples.flunders.types import Fischer, Flunder
from steersman import Server

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m examples.flunders", description="Serve flunders and fischers.")
    parser.add_argument("folder", help="where their objects and the keys of the server are kept")
    parser.add_argument("port", nargs="?", type=int, default=6443, help="0 for a free one (default: %(default)s)")
    given = parser.parse_args()
    Server(Flunder, Fischer, data_dir=given.folder, secure_port=given.port).run()

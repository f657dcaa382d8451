"""`python -m examples.flunders FOLDER [PORT]` serves flunders and fischers."""

import sys

from examples.flunders.types import Fischer, Flunder
from steersman import Server

if __name__ == "__main__":
    folder, *port = sys.argv[1:]
    Server(Flunder, Fischer, data_dir=folder, secure_port=int(port[0]) if port else 6443).run()

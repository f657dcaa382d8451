#!/usr/bin/env python3
"""Follow deploy/Containerfile without a container engine, and use what it makes as a container would run it.

    sudo python -m tools.try_image dist/steersman-0.1.0-py3-none-any.whl [--base /usr/bin/python3.11]

Its instructions are followed in a mount namespace of their own, where /opt, /build and /data are empty: the base image is
this machine with the Python `--base`, which every user can run. Then `/` is mounted read-only, and the entry point runs as
the image's user, without capabilities: the health check is asked until it passes, a pod is created, and SIGTERM ends the
program. What only an engine does (layers, the registry, ports) is not tried. Needs Linux and root.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tools.try_wheel import Client, ready_fields, run_pod

ROOT = Path(__file__).resolve().parent.parent
CONTAINERFILE = ROOT / "deploy/Containerfile"
_PATIENCE = 60.0
_MOUNTED = ("/opt", "/mnt")


@dataclass
class Image:
    """A Containerfile: the instructions that make files, in order, and the settings of its last stage."""

    steps: list[tuple[str, str]] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    environ: dict[str, str] = field(default_factory=dict)


def parse(text: str) -> Image:
    """Parse a Containerfile. Raises ValueError for an instruction that this program does not follow."""
    image = Image()
    for line in re.sub(r"\\\n", " ", text).splitlines():
        word, _, rest = line.strip().partition(" ")
        if not word or word.startswith("#"):
            continue
        if word == "ENV":
            image.environ |= dict(each.split("=", 1) for each in shlex.split(rest))
        elif word in ("RUN", "COPY", "FROM"):
            image.steps.append((word, rest))
        elif word in ("USER", "VOLUME", "EXPOSE", "ENTRYPOINT", "CMD", "HEALTHCHECK"):
            image.settings[word] = rest
        else:
            raise ValueError(f"{CONTAINERFILE.name}: {word} is not followed here")
    return image


def exec_form(text: str) -> list[str]:
    """Return the words of an instruction in the JSON form, without the flags before it."""
    words: list[str] = json.loads(text[text.index("[") :])
    return words


def make(image: Image, wheel: Path, base: Path) -> None:
    """Follow the instructions that make files. Raises CalledProcessError."""
    shims = Path(tempfile.mkdtemp(dir="/mnt"))
    shim = shims / "python"
    shim.write_text(f'#!/bin/sh\ncase "$1 $2" in "-m pip") exec {sys.executable} "$@";; esac\nexec {base} "$@"\n')
    shim.chmod(0o755)
    environ = {"PATH": f"{shims}:/usr/bin:/bin", "HOME": "/mnt"}
    for word, rest in image.steps:
        if word == "RUN":
            subprocess.run(["/bin/sh", "-ec", rest], check=True, env=environ)
        elif word == "COPY" and "--from" not in rest:
            *sources, target = rest.split()
            Path(target).mkdir(parents=True, exist_ok=True)
            for source in sources:
                shutil.copy(wheel if source.endswith(".whl") else ROOT / source, target)


def try_it(image: Image) -> None:
    """Run the entry point as the image's user on a read-only root. Raises RuntimeError or Failed if anything fails."""
    user, group = image.settings["USER"].split(":")
    confined = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", "--bounding-set=-all"]
    confined += ["--no-new-privs"]
    environ = {**image.environ}
    program = [*confined, *exec_form(image.settings["ENTRYPOINT"]), *exec_form(image.settings["CMD"])]
    program += ["--secure-port", "0"]  # a container has its ports to itself
    healthy = [*confined, *exec_form(image.settings["HEALTHCHECK"])]
    process = subprocess.Popen(program, env=environ, cwd="/", stdout=subprocess.PIPE, text=True)
    try:
        client = Client(ready_fields(process)["url"], Path("/data"))
        deadline = time.monotonic() + _PATIENCE
        while subprocess.run(healthy, env=environ, cwd="/", stdout=subprocess.DEVNULL).returncode:
            if time.monotonic() > deadline:
                raise RuntimeError("the health check does not pass")
            time.sleep(0.1)
        run_pod(client)
        process.send_signal(signal.SIGTERM)
        if process.wait(_PATIENCE):
            raise RuntimeError(f"SIGTERM ended the program with {process.returncode}")
    finally:
        process.kill()
        process.wait()


def main() -> None:
    """Follow the file, try the result and print the size of what it adds to its base."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--base", type=Path, default=Path("/usr/bin/python3.11"))
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.inside:
        command = ["unshare", "--mount", sys.executable, "-m", "tools.try_image", *sys.argv[1:], "--inside"]
        sys.exit(subprocess.run(command, cwd=ROOT, check=False).returncode)
    wheel = options.wheel.resolve()
    for each in _MOUNTED:
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", each], check=True)
    for each in ("/build", "/data"):
        inside = Path("/mnt") / each[1:]
        inside.mkdir()
        if os.path.islink(each) and os.readlink(each) == str(inside):
            os.unlink(each)  # left by a run that was killed
        os.symlink(inside, each)  # fails if this machine has such a folder, which is then left alone
    try:
        image = parse(CONTAINERFILE.read_text())
        make(image, wheel, options.base)
        size = subprocess.run(
            ["du", "-sm", "/opt/steersman"], capture_output=True, text=True, check=True
        ).stdout.split()[0]
        subprocess.run(["mount", "-o", "remount,bind,ro", "/"], check=True)
        try_it(image)
    finally:
        subprocess.run(["mount", "-o", "remount,bind,rw", "/"], check=False)
        for each in ("/build", "/data"):
            os.unlink(each)
    print(f"the image adds {size} MiB to its base; it runs as {image.settings['USER']} on a read-only root")


if __name__ == "__main__":
    main()

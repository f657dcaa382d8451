"""Optional packages: a feature whose package is missing names the extra that installs it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from steersman.work.extras import MissingExtra, require

_WITHOUT = """
import sys
for name in {missing!r}:
    sys.modules[name] = None
"""


def run(missing: tuple[str, ...], code: str) -> str:
    """Return the output of a Python program that runs without some packages."""
    program = _WITHOUT.format(missing=missing) + code
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_a_module_that_is_there_is_returned() -> None:
    assert require("json", feature="documents", package="json", extra="none").loads("1") == 1


def test_a_missing_package_is_named_with_its_extra() -> None:
    words = "traces need the package nothing-at-all, which is not installed; pip install 'steersman\\[tracing\\]'"
    with pytest.raises(MissingExtra, match=words) as caught:
        require("nothing_at_all.inside", feature="traces", package="nothing-at-all", extra="tracing")
    assert caught.value.name == "nothing-at-all"


def test_a_server_without_isal_compresses_with_zlib() -> None:
    code = """
import gzip
from steersman.machinery import deflate
stream = deflate.compressor()
assert gzip.decompress(stream.compress(b"ab" * 9) + stream.flush()) == b"ab" * 9
assert gzip.decompress(deflate.gzipped(b"ab")) == b"ab"
print(deflate.decompress(deflate.compress(b"ab")).decode())
"""
    assert run(("isal",), code) == run((), code) == "ab\n"

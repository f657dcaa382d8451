"""Times reading and writing protobuf against JSON: `python -m bench.protobuf_micro`.

Prints microseconds an object, the best of several rounds, and how long the plans of a class take to make at first use.
"""

from __future__ import annotations

import argparse
import base64
import json
import timeit
from collections.abc import Callable
from pathlib import Path

from steersman.kinds.built_in import classes_of
from steersman.machinery.codec import serializer
from steersman.machinery.codec.protobuf import documents as protobuf

VECTORS = Path(__file__).parent.parent / "tests/machinery/codec/protobuf/recorded_documents.json"


def microseconds(call: Callable[[], object]) -> float:
    """The time of one call."""
    return min(timeit.repeat(call, number=300, repeat=7)) / 300 * 1e6


def main() -> None:
    """Measures each kind there is an object of."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    print(f"{'kind':28}{'bytes':>7}{'first':>9}{'decode':>9}{'encode':>9}{'JSON in':>9}{'JSON out':>9}")
    for vector in json.loads(VECTORS.read_bytes())["objects"]:
        cls = classes_of(vector["group"], vector["version"])[vector["kind"]]
        raw = protobuf.decode_envelope(base64.b64decode(vector["protobuf_base64"])).raw
        first = timeit.timeit(lambda cls=cls, raw=raw: protobuf.decode(cls, raw), number=1) * 1e6
        obj = protobuf.decode(cls, raw)
        text = serializer.encode(obj)
        figures = (
            first,
            microseconds(lambda cls=cls, raw=raw: protobuf.decode(cls, raw)),
            microseconds(lambda obj=obj: protobuf.encode_body(obj)),
            microseconds(lambda cls=cls, text=text: serializer.decode_json(cls, text)),
            microseconds(lambda obj=obj: serializer.encode(obj)),
        )
        print(f"{vector['kind']:28}{len(raw):7}" + "".join(f"{figure:9.1f}" for figure in figures))


if __name__ == "__main__":
    main()

"""Records the OpenAPI documents of a running API server, without descriptions, for the generators.

    python -m tools.record_documents URL FOLDER --ca FILE --token TOKEN

Writes `openapi/NAME.json` for every OpenAPI v3 document, `openapi-v2.json`, and `discovery.json`, the aggregated
discovery. Of a kube-apiserver with `--runtime-config=api/all=true`, FOLDER is the `all` that
tools/generate_openapi.py and tools/generate_field_schemas.py read.
"""

from __future__ import annotations

import argparse
import json
import ssl
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
TIMEOUT = 60.0


def main() -> None:
    """Asks for every document and writes it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ca", required=True)
    parser.add_argument("--token", required=True)
    options = parser.parse_args()
    get = getter(options.url, options.ca, options.token)
    folder = options.folder
    (folder / "openapi").mkdir(parents=True, exist_ok=True)
    for name in get("/openapi/v3")["paths"]:
        write(folder / "openapi" / f"{name.replace('/', '_')}.json", without_descriptions(get(f"/openapi/v3/{name}")))
    write(folder / "openapi-v2.json", without_descriptions(get("/openapi/v2")))
    found = {f"aggregated_{root}": get(f"/{root}", AGGREGATED) for root in ("api", "apis")}
    write(folder / "discovery.json", found)


def getter(url: str, ca: str, token: str) -> Callable[..., Any]:
    """Return a function that gets the JSON at a path of the server, of a media type if one is given."""
    context = ssl.create_default_context(cafile=ca)

    def get(path: str, accept: str = "application/json") -> Any:
        headers = {"Authorization": f"Bearer {token}", "Accept": accept}
        request = urllib.request.Request(url + path, headers=headers)
        with urllib.request.urlopen(request, context=context, timeout=TIMEOUT) as response:
            return json.load(response)

    return get


def write(path: Path, document: Any) -> None:
    """Write a document in a form in which equal documents have equal texts."""
    path.write_text(json.dumps(document, sort_keys=True) + "\n")


def without_descriptions(value: Any, *, names: bool = False) -> Any:
    """A document without them; `names`: the keys are names, of which "description" may be one."""
    if isinstance(value, list):
        return [without_descriptions(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: without_descriptions(each, names=not names and key in ("properties", "definitions", "schemas", "paths"))
        for key, each in value.items()
        if names or key != "description" or not isinstance(each, str)
    }


if __name__ == "__main__":
    main()

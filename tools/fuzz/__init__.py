"""Fuzzers of what clients send: whatever comes, a reader raises what it says it does, soon and in little memory.

    python -m tools.fuzz --seconds 300            all targets, each for its share of the time
    python -m tools.fuzz labels cel --seconds 60  some of them
    python -m tools.fuzz --engine atheris cel     with coverage (dependency group `fuzz`), until it is interrupted

A target is a function of bytes; `corpus/NAME/` has what its inputs are made from. What was found once stays there.
"""

"""Fuzzers of what clients send: whatever comes, a reader raises what it says it does, soon and in little memory.

    python -m tools.fuzz --seconds 300            all targets, each for its share of the time
    python -m tools.fuzz labels cel --seconds 60  some of them
    python -m tools.fuzz.guided cel --seconds 600 one with coverage (atheris, of the dependency group `fuzz`)

A target is a function of bytes; `corpus/NAME/` has what its inputs are made from. What was found once stays there.
"""

"""Runs scripts without waiting, and carries out their effects."""

from __future__ import annotations

from dataclasses import dataclass, field

from steersman.nodes.shell.effects import Answer, Effect, Repeated, Wait, World, Write, with_input
from steersman.nodes.shell.shell import Shell


@dataclass
class CommandOutcome:
    """Result of a command."""

    code: int | None = None
    """None if the command did not end."""
    out: str = ""
    err: str = ""
    seconds: float = 0.0
    other: list[Effect] = field(default_factory=list)


def world() -> World:
    return World("pod", {"A": "x y", "HOME": "/root"}, lambda: 1_800_000_000.0, {"/etc/hostname": b"pod\n"})


def run(*words: str, stdin: bytes = b"", left_out: int = 0, most: int = 10_000) -> CommandOutcome:
    """Run a command until it ends, waits for ever, or has had `most` effects."""
    outcome, answer = CommandOutcome(), None
    execution = with_input(Shell(world()).run(words), stdin)
    for _ in range(most):
        reply: Answer = answer
        try:
            effect = execution.send(reply)
        except StopIteration as done:
            outcome.code = done.value
            break
        answer = None
        match effect:
            case Write(1, data):
                outcome.out += data.decode()
            case Write(_, data):
                outcome.err += data.decode()
            case Wait(seconds):
                outcome.seconds += seconds
                if seconds == float("inf"):
                    break
            case _:
                outcome.other.append(effect)
                answer = left_out if isinstance(effect, Repeated) else None
    return outcome


def sh(script: str, stdin: bytes = b"", left_out: int = 0, most: int = 10_000) -> CommandOutcome:
    """Run a script in the same way."""
    return run("sh", "-c", script, stdin=stdin, left_out=left_out, most=most)

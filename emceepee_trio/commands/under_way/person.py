"""What a server asks, put to a person in a terminal, and what that one says."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from ..common.output import say
from ..common.terminal import is_terminal
from .asking import ask, form, text

PERSON = "a person"
"""In place of the model that has made an answer to a sampling request."""


def is_here() -> bool:
    """Whether somebody sees what is asked, and can type."""
    return sys.stdin.isatty() and is_terminal()


def show(question: Mapping[str, Any]) -> None:
    """As the page's JSON has it, or a tool of ours."""
    calls = ", ".join(question.get("calls") or ()) or "none that is known"
    left = f", for {calls}; {question['left']} s are left." if "left" in question else ":"
    say(f"\n{question['server']} asks{left}")
    if is_sampling(question):
        params = question["params"]
        if params.get("systemPrompt"):
            say(f"\nsystem: {params['systemPrompt']}")
        for message in params.get("messages") or ():
            content = message.get("content")
            blocks = content if isinstance(content, list) else [content]
            for block in blocks:
                said = block.get("text") if isinstance(block, dict) else None
                say(f"\n{message.get('role')}: {said or '[what is no text]'}")
        say()
        return
    say(f"\n{question.get('message') or ''}")
    if question.get("mode") == "url":
        say(f"\nOpen this, and do what it says:\n\n  {question.get('url')}\n")


def answered(question: Mapping[str, Any]) -> dict[str, Any]:
    """What somebody types now, as a client of the protocol says it.

    Raises:
        LeftOpen: nobody does.
    """
    if is_sampling(question):
        return completion(text())
    if is_form(question):
        content = form(question.get("requestedSchema"))
        word = ask("\nSend this? [Y/n, c to cancel] ").strip().lower()
        body: dict[str, Any] = {"action": "accept", "content": content}
    else:
        word = ask("Agree? [Y/n, c to cancel] ").strip().lower()
        body = {"action": "accept"}
    if word in ("", "y", "yes"):
        return body
    return {"action": "cancel" if word.startswith("c") else "decline"}


def is_sampling(question: Mapping[str, Any]) -> bool:
    return "params" in question


def is_form(question: Mapping[str, Any]) -> bool:
    return not is_sampling(question) and question.get("mode") != "url"


def completion(said: str) -> dict[str, Any]:
    content = {"type": "text", "text": said}
    return {"role": "assistant", "content": content, "model": PERSON, "stopReason": "endTurn"}

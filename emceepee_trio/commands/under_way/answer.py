"""``emceepee answer``: what servers ask, in a running daemon, and a person's answer."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from ..common.given import Given, read
from ..common.options import Usage, add_url_option
from ..common.output import complain, say
from ..common.terminal import is_terminal, show_table
from .api import Api, NoAnswer, RefusedByDaemon, chosen
from .asking import LeftOpen, ask, form, text, typed

PERSON = "a person"
"""In place of the model that has made an answer to a sampling request."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "question", nargs="?", metavar="QUESTION", help="that one; the end of its id will do"
    )
    parser.add_argument(
        "values",
        nargs="*",
        metavar="ANSWER",
        help="KEY=VALUE, KEY:=JSON or JSON for a form; text, or - for standard input, for "
        "sampling. In a terminal it is asked for",
    )
    does = parser.add_mutually_exclusive_group()
    does.add_argument("--accept", action="store_true", help="agree, with nothing to fill in")
    does.add_argument("--decline", action="store_true", help="say no")
    does.add_argument("--cancel", action="store_true", help="say neither")
    parser.add_argument("--json", action="store_true", help="the questions, as JSON")
    add_url_option(parser)


def run(options: argparse.Namespace) -> int:
    says = options.accept or options.decline or options.cancel
    if options.values and says:
        raise Usage("an answer, or --accept, --decline, --cancel")
    try:
        return _run(options, says=says)
    except (NoAnswer, RefusedByDaemon) as error:
        for line in str(error).split("\n"):
            complain(f"emceepee answer: {line}")
    except LeftOpen:
        complain("emceepee answer: it stays open")
    return 1


def _run(options: argparse.Namespace, *, says: bool) -> int:
    api = Api.of(options)
    questions = api.get("/now", "questions")["questions"]
    if options.question is None:
        if says:
            raise Usage("--accept, --decline, --cancel: name the QUESTION")
        if (wanted := _pick(questions, as_json=options.json)) is None:
            return 0
    else:
        wanted = options.question
    found = chosen(wanted, questions, "question", "question")
    path = f"/questions/{found['session']}/{found['question']}"
    question = api.get(path, "kind")
    if options.json:
        say(json.dumps(question, indent=2, ensure_ascii=False))
        return 0
    if says or options.values:
        say(api.post(path, _given(options, question)))
        return 0
    if not _is_asked():
        raise Usage("what is the answer? See `emceepee answer --help`")
    _show(question)
    while True:
        try:
            said = api.post(path, _typed(question))
        except RefusedByDaemon as error:
            say(f"\n{error}\n")
            api.get(path, "kind")  # or it is no more to be answered
        else:
            say(f"\n{said}")
            return 0


def _is_asked() -> bool:
    return sys.stdin.isatty() and is_terminal()


def _pick(questions: list[dict[str, Any]], *, as_json: bool) -> str | None:
    """List them all; in a terminal, the one that shall be answered."""
    if as_json:
        say(json.dumps(questions, indent=2, ensure_ascii=False))
        return None
    if not questions:
        say("no open questions")
        return None
    rows = [
        (
            *(each[key] for key in ("question", "server", "kind")),
            each["message"] or "a completion by a model",
            each["client"],
            f"{each['seconds']:.0f} s",
            f"{each['left']} s",
        )
        for each in questions
    ]
    show_table(("question", "server", "kind", "asks", "client", "since", "left"), rows)
    if not _is_asked():
        return None
    if len(questions) == 1:
        return str(questions[0]["question"])
    said = ask(f"\nWhich one? (1 to {len(questions)}, Enter for none) ").strip()
    if said.isdecimal() and 1 <= int(said) <= len(questions):
        return str(questions[int(said) - 1]["question"])
    return said or None


def _show(question: dict[str, Any]) -> None:
    calls = ", ".join(question.get("calls") or ()) or "none that is known"
    say(f"\n{question['server']} asks, for {calls}; {question['left']} s are left.")
    if question["kind"] == "sampling":
        params = question.get("params") or {}
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


def _given(options: argparse.Namespace, question: dict[str, Any]) -> dict[str, Any]:
    """The answer that stands in the command line."""
    if options.decline or options.cancel:
        return {"action": "decline" if options.decline else "cancel"}
    if question["kind"] == "sampling":
        if options.accept:
            raise Usage("--accept: this wants a text")
        words = options.values
        return _completion(read("-") if words == ["-"] else " ".join(words))
    if options.accept:
        return {"action": "accept", "content": {}} if _is_form(question) else {"action": "accept"}
    if not _is_form(question):
        raise Usage("this is a page to be opened: --accept, --decline or --cancel")
    given = Given.of(options.values)
    content = {**given.whole, **typed(question.get("requestedSchema"), given.words)}
    return {"action": "accept", "content": content}


def _typed(question: dict[str, Any]) -> dict[str, Any]:
    """The answer that somebody types now."""
    if question["kind"] == "sampling":
        return _completion(text())
    if _is_form(question):
        content = form(question.get("requestedSchema"))
        word = ask("\nSend this? [Y/n, c to cancel] ").strip().lower()
        body: dict[str, Any] = {"action": "accept", "content": content}
    else:
        word = ask("Agree? [Y/n, c to cancel] ").strip().lower()
        body = {"action": "accept"}
    if word in ("", "y", "yes"):
        return body
    return {"action": "cancel" if word.startswith("c") else "decline"}


def _is_form(question: dict[str, Any]) -> bool:
    return question.get("mode") != "url"


def _completion(said: str) -> dict[str, Any]:
    content = {"type": "text", "text": said}
    return {"role": "assistant", "content": content, "model": PERSON, "stopReason": "endTurn"}

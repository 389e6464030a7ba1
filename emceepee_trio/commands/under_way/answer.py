"""``emceepee answer``: what servers ask, in a running daemon, and a person's answer."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from typing import Any

from ...model.json.problems import did_you_mean
from ..common.given import Given, read
from ..common.options import Usage, add_url_option
from ..common.output import complain, say
from ..common.terminal import show_table
from .api import Api, NoAnswer, RefusedByDaemon, chosen
from .asking import LeftOpen, ask, typed
from .person import answered, completion, is_form, is_here, show


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
    if not is_here():
        raise Usage("what is the answer? See `emceepee answer --help`")
    show(question)
    while True:
        try:
            said = api.post(path, answered(question))
        except RefusedByDaemon as error:
            say(f"\n{error}\n")
            api.get(path, "kind")  # or it is no more to be answered
        else:
            say(f"\n{said}")
            return 0


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
    if not is_here():
        return None
    if len(questions) == 1:
        return str(questions[0]["question"])
    said = ask(f"\nWhich one? (1 to {len(questions)}, Enter for none) ").strip()
    if said.isdecimal() and 1 <= int(said) <= len(questions):
        return str(questions[int(said) - 1]["question"])
    return said or None


def _given(options: argparse.Namespace, question: dict[str, Any]) -> dict[str, Any]:
    """The answer that stands in the command line."""
    if options.decline or options.cancel:
        return {"action": "decline" if options.decline else "cancel"}
    if question["kind"] == "sampling":
        if options.accept:
            raise Usage("--accept: this wants a text")
        words = options.values
        return completion(read("-") if words == ["-"] else " ".join(words))
    if options.accept:
        return {"action": "accept", "content": {}} if is_form(question) else {"action": "accept"}
    if not is_form(question):
        raise Usage("this is a page to be opened: --accept, --decline or --cancel")
    given = Given.of(options.values)
    schema = question.get("requestedSchema")
    _check_fields({**given.whole, **given.words}, schema)
    content = {**given.whole, **typed(schema, given.words)}
    return {"action": "accept", "content": content}


def _check_fields(given: Iterable[str], schema: object) -> None:
    """
    Raises:
        Usage: one is in no form that was asked for, and nobody would ever look at it.
    """
    known = schema.get("properties") if isinstance(schema, dict) else None
    fields = sorted(known) if isinstance(known, dict) else []
    for name in given:
        if name not in fields:
            hint = did_you_mean(name, fields) or ";"
            raise Usage(f"no field {name!r}{hint} there are: {', '.join(fields) or 'none'}")

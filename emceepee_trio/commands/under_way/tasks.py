"""``emceepee tasks``: calls that are under way in a running daemon, and tasks that are over."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ..common.options import Usage, add_url_option
from ..common.output import complain, say
from ..common.terminal import show_table
from .api import Api, NoAnswer, RefusedByDaemon, chosen

END = 8
"""Characters of the end of an id, by which it is named on a command line."""
TASK = ("task", "status", "server", "tool", "client", "begun", "note")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "call", nargs="?", metavar="CALL", help="that one; the end of its id will do"
    )
    does = parser.add_mutually_exclusive_group()
    does.add_argument("--result", action="store_true", help="what came of CALL")
    does.add_argument("--cancel", action="store_true", help="end CALL; its server is told")
    parser.add_argument("--json", action="store_true", help="everything, as JSON")
    add_url_option(parser)


def run(options: argparse.Namespace) -> int:
    if options.call is None and (options.result or options.cancel):
        raise Usage("--result and --cancel are for one CALL; `emceepee tasks` lists them")
    try:
        api = Api.of(options)
        now = api.get("/now", "calls")
        calls, tasks = now["calls"], api.get("/tasks", "tasks")["tasks"]
        # Asked for later, so it may be over meanwhile: it is shown once, as it was first.
        shown = {call["call"] for call in calls}
        others = [task for task in tasks if task["call"] not in shown]
        # The oldest calls are shown, so there may be tasks under way that are not among them.
        younger = [task for task in others if task["status"] == "working"]
        over = [task for task in others if task["status"] != "working"]
        if options.call is None:
            if options.json:
                said = {
                    "calls": calls,
                    "calls_in_all": now["calls_in_all"],
                    "younger_tasks": younger,
                    "tasks": over,
                }
                say(json.dumps(said, indent=2, ensure_ascii=False))
            else:
                _list(calls, now["calls_in_all"], younger, over)
            return 0
        call = chosen(options.call, [*calls, *others], "call", "call")
        path = f"/calls/{call['session']}/{call['call']}"
        if options.cancel:
            say(api.post(f"{path}/cancel", {}))
            return 0
        call = api.get(f"{path}?show=result" if options.result else path, "call")
    except (NoAnswer, RefusedByDaemon) as error:
        for line in str(error).split("\n"):
            complain(f"emceepee tasks: {line}")
        return 1
    if options.result and not options.json:
        if not call["is_over"]:
            complain(f"emceepee tasks: it waits for {call['waits']['said']}")
            return 1
        if call["too_long"]:
            complain("emceepee tasks: the result is too long to be shown")
            return 1
        say(json.dumps(call["result"], indent=2, ensure_ascii=False))
    else:
        say(json.dumps(call, indent=2, ensure_ascii=False))
    return 0


def _list(
    calls: list[dict[str, Any]],
    in_all: int,
    younger: list[dict[str, Any]],
    over: list[dict[str, Any]],
) -> None:
    if not calls and not younger and not over:
        say("no calls are under way, and no tasks are kept")
    if calls:
        titles = ("call", "is a", "server", "tool", "client", "since", "waits", "for")
        show_table(titles, map(_under_way, calls))
        if in_all > len(calls):
            say(f"and {in_all - len(calls)} more, which are younger")
    if younger:
        show_table(TASK, map(_task, younger))
    if over:
        if calls or younger:
            say()
        show_table(TASK, map(_task, over))


def _task(task: dict[str, Any]) -> list[str]:
    keys = ("call", "status", "server", "tool", "client", "created_at")
    return [*(task[key] for key in keys), task["error"] or task["status_message"] or ""]


def _under_way(call: dict[str, Any]) -> list[str]:
    waits = call["waits"]
    said = waits["said"]
    if waits["for"] == "question":
        said += f" (`emceepee answer {waits['question'][-END:]}`)"
    elif call["progress"]:
        said += f": {call['progress']}"
    kind = "task" if call["is_task"] else "call"
    named = (call[key] for key in ("server", "tool", "client"))
    times = (f"{seconds:.0f} s" for seconds in (call["seconds"], waits["seconds"]))
    return [call["call"], kind, *named, *times, said]

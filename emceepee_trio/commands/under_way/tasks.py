"""``emceepee tasks``: calls that have become tasks, in a running daemon."""

from __future__ import annotations

import argparse
import json

from ..common.options import Usage, add_url_option
from ..common.output import complain, say
from ..common.terminal import show_table
from .api import Api, NoAnswer, RefusedByDaemon, chosen


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "task", nargs="?", metavar="TASK", help="that one; the end of its id will do"
    )
    does = parser.add_mutually_exclusive_group()
    does.add_argument("--result", action="store_true", help="what came of TASK")
    does.add_argument("--cancel", action="store_true", help="end TASK; its server is told")
    parser.add_argument("--json", action="store_true", help="everything, as JSON")
    add_url_option(parser)


def run(options: argparse.Namespace) -> int:
    if options.task is None and (options.result or options.cancel):
        raise Usage("--result and --cancel are for one TASK; `emceepee tasks` lists them")
    try:
        api = Api.of(options)
        tasks = api.get("/tasks", "tasks")["tasks"]
        if options.task is None:
            _list(tasks, as_json=options.json)
            return 0
        task = chosen(options.task, tasks, "call", "task")
        path = f"/calls/{task['session']}/{task['call']}"
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


def _list(tasks: list[dict[str, object]], *, as_json: bool) -> None:
    if as_json:
        say(json.dumps(tasks, indent=2, ensure_ascii=False))
    elif not tasks:
        say("no tasks")
    else:
        keys = ("call", "status", "server", "tool", "client", "created_at")
        rows = [
            [*(task.get(key, "") for key in keys), task.get("error") or task.get("status_message")]
            for task in tasks
        ]
        titles = ("task", "status", "server", "tool", "client", "since", "note")
        show_table(titles, [["" if cell is None else cell for cell in row] for row in rows])

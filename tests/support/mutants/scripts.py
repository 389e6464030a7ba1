"""Bugs that would let a script do more than it may, or for longer."""

from __future__ import annotations

from . import mutant

_CALLS = "session/calls/test_calls_of_scripts.py::"
_CODE = "tools/test_code.py::"

SCRIPTS = (
    mutant(
        "a server that is missing in a script's list is told to nobody",
        "codemode/run.py",
        "                self._log(warning)\n",
        "                pass\n",
        "tools/test_scripts.py::test_a_server_that_is_missing_in_a_list_is_told_in_the_log",
    ),
    mutant(
        "waiting counts as a call of a script",
        "codemode/run.py",
        '        if name != "sleep":\n',
        "        if True:\n",
        "tools/test_scripts.py::test_calls_are_counted_and_bounded",
    ),
    mutant(
        "a script that has ended makes another call",
        "session/calls/calls.py",
        "        if within is not None and "
        "(within.slot.is_settled or within.scope.cancel_called):\n",
        "        if within is not None and within.task is None and within.slot.is_settled:\n",
        f"{_CALLS}test_when_a_script_is_over_so_are_its_calls_at_once",
    ),
    mutant(
        "a script whose time is over makes a call until its task has noticed",
        "session/calls/calls.py",
        "(within.slot.is_settled or within.scope.cancel_called)",
        "within.slot.is_settled",
        f"{_CALLS}test_none_is_made_after_the_time_of_a_script",
    ),
    mutant(
        "the calls of a script that is cancelled go on until it is gone",
        "session/calls/calls.py",
        "        for made in tuple(call.makes):\n",
        "        for made in ():\n",
        f"{_CALLS}test_when_a_script_is_over_so_are_its_calls_at_once",
    ),
    mutant(
        "a script's call becomes a task",
        "tools/execution.py",
        "    if request.within is not None:\n"
        "        return Reply(await session.calls.complete(call))\n",
        "",
        f"{_CODE}test_a_script_that_takes_long_becomes_a_task_or_ends",
        f"{_CODE}test_what_a_scripts_call_is_asked_reaches_the_client",
    ),
    mutant(
        "a script calls what its server's entry does not allow",
        "tools/execution.py",
        "    if not backend.catalog.allows(asked.tool):\n",
        "    if request.within is None and not backend.catalog.allows(asked.tool):\n",
        f"{_CODE}test_calls_are_bounded_and_policies_asked",
    ),
    mutant(
        "a call of a script counts twice",
        "codemode/run.py",
        "            self.calls += 1\n",
        "            self.calls += 2\n",
        f"{_CODE}test_calls_are_bounded_and_policies_asked",
    ),
    mutant(
        "a refused call of a script does not count",
        "codemode/run.py",
        "        done = await self.do(name, given)\n",
        "        try:\n            done = await self.do(name, given)\n"
        "        except Raised:\n            self.calls -= 1\n            raise\n",
        f"{_CODE}test_calls_are_bounded_and_policies_asked",
    ),
    mutant(
        "what a script reads of a long result has in it where that is from",
        "tools/code.py",
        "            return part(reply.result)\n",
        "            return data(reply.result)\n",
        f"{_CODE}test_a_script_gets_prompts_and_reads_what_was_too_long",
    ),
)

"""Bugs of the view of one server, and of the protocol's tasks."""

from __future__ import annotations

from . import mutant

_ONE = "front/test_one_server.py::"
_TASKS = "front/test_tasks.py::"
_FACE = "front/faces/one_server"
_OF_TASKS = "front/tasks.py"

GATEWAY = (
    mutant(
        "a model finds tools that are for people alone",
        "tools/finding.py",
        "is_wanted and is_for_model(entry)",
        "is_wanted",
        "tools/test_list_tools.py"
        "::test_a_tool_that_is_for_an_app_alone_is_not_found_and_can_be_called",
    ),
    mutant(
        "a client hears a code of the other era where there is none",
        "model/protocol/eras.py",
        '    if method == "resources/read" and of_modern != is_modern:\n',
        '    if method == "resources/read":\n',
        "model/protocol/test_eras.py",
    ),
    mutant(
        "what one server denies is listed where it is alone",
        f"{_FACE}/requests.py",
        "        return {**result, key: shown}\n",
        "        return result\n",
        f"{_ONE}test_what_is_denied_is_neither_listed_nor_called",
    ),
    mutant(
        "what one server denies is called where it is alone",
        f"{_FACE}/calls.py",
        "        if not backend.catalog.allows(name):\n",
        "        if False:\n",
        f"{_ONE}test_what_is_denied_is_neither_listed_nor_called",
    ),
    mutant(
        "an answer overtakes what was said before it",
        f"{_FACE}/requests.py",
        "                await news.sent()\n",
        "                pass\n",
        f"{_ONE}test_the_command_line_shows_one_here_and_on_a_daemon",
    ),
    mutant(
        "progress of a server as it is goes out under a token that its client does not know",
        f"{_FACE}/news.py",
        '{**said, "progressToken": token}',
        "dict(said)",
        f"{_ONE}test_what_a_call_says_comes_before_its_answer_and_in_order",
    ),
    mutant(
        "a modern client hears what no request of it wants logged",
        "front/log_messages.py",
        "at_least(str(level))(entry.level)",
        "True",
        f"{_ONE}test_a_modern_client_hears_of_what_it_asked_for",
    ),
    mutant(
        "a stream acknowledges what its server does not promise",
        f"{_FACE}/listening.py",
        'wanted.get(each) is True and _says(promised, capability, "listChanged")',
        "wanted.get(each) is True",
        f"{_ONE}test_a_stream_says_what_it_will_deliver_and_delivers_that",
    ),
    mutant(
        "a session of one server is one of any other",
        "front/handshake/endpoint.py",
        '        if connection.front.face.server != server_of(request.scope["path"]):\n',
        "        if False:\n",
        f"{_ONE}test_a_server_that_there_is_not_is_refused_with_those_there_are",
    ),
    mutant(
        "the last who follows a resource does not undo it",
        "tools/common/following.py",
        "            uri not in wanted.subscribed()\n            and backend.client",
        "            False\n            and backend.client",
        f"{_ONE}test_a_stream_says_what_it_will_deliver_and_delivers_that",
    ),
    mutant(
        "an error of one era is told to a client of the other",
        "model/protocol/eras.py",
        "        if is_modern and code == NOT_FOUND:\n",
        "        if not is_modern and code == NOT_FOUND:\n",
        f"{_ONE}test_errors_are_those_of_the_server",
    ),
    mutant(
        "a task is told as failed because its tool reports an error",
        _OF_TASKS,
        '        return said | {"result": call.slot.peek()}\n',
        "        is_error = call.slot.peek().get('isError')\n"
        '        return said | {"status": "failed" if is_error else said["status"]} | {\n'
        '            "result": call.slot.peek()\n'
        "        }\n",
        f"{_TASKS}test_what_a_tool_says_of_its_failure_is_a_result",
    ),
    mutant(
        "who does not know tasks gets one",
        _OF_TASKS,
        "isinstance(extensions, Mapping) and EXTENSION in extensions",
        "extensions is not asked",
        f"{_TASKS}test_who_does_not_know_tasks_gets_none",
    ),
    mutant(
        "an answer to a question of a task is taken although it does not fit",
        _OF_TASKS,
        "judged(question, response)",
        "judged(question, response, as_it_is=True)",
        f"{_TASKS}test_a_question_of_a_task_is_answered_with_an_update",
    ),
    mutant(
        "tasks of the protocol are offered in the era that has others",
        _OF_TASKS,
        "    if is_modern:\n        extensions[EXTENSION]",
        "    if True:\n        extensions[EXTENSION]",
        f"{_TASKS}test_only_the_modern_era_has_it",
    ),
    mutant(
        "a stream is told of a task what it knows",
        _OF_TASKS,
        "            told = said\n        if call.slot.is_settled:\n",
        "        if call.slot.is_settled:\n",
        f"{_TASKS}test_a_stream_tells_of_a_task_what_is_new_alone",
    ),
    mutant(
        "a stream promises tasks that their server does not have",
        _OF_TASKS,
        '{"taskIds": list(found)} if found else {}',
        '{"taskIds": list(wanted)}',
        f"{_TASKS}test_statuses_of_tasks_between_them_are_followed_as_well",
    ),
    mutant(
        "what is told of a server's task is the answer that it gave",
        _OF_TASKS,
        'for key, value in task.items() if key != "resultType"}',
        "for key, value in task.items()}",
        f"{_TASKS}test_statuses_of_tasks_between_them_are_followed_as_well",
    ),
    mutant(
        "a header may name another task",
        "front/modern/endpoint.py",
        '            if about is None or about != (message.params or {}).get("taskId"):\n',
        "            if False:\n",
        f"{_TASKS}test_what_is_no_request_of_it_is_not_there",
    ),
    mutant(
        "nobody looks whether a client is gone while its answer is made",
        "front/modern/exchange.py",
        '                self._working.cancel("client is gone")',
        "                pass",
        "front/test_modern.py::test_who_goes_while_a_long_answer_is_made_has_it_by_asking_again",
    ),
    mutant(
        "who goes as something happens is told of it all the same",
        "front/modern/exchange.py",
        "        elif self.look():\n",
        "        elif False:\n",
        "front/test_modern.py::test_who_closes_a_wait_leaves_its_events_to_the_next",
    ),
    mutant(
        "an answer that counts as told is broken off before it is written",
        "front/modern/exchange.py",
        "        with trio.CancelScope(shield=True):  # bounded by the transport's patience",
        "        with trio.CancelScope():  # bounded by the transport's patience",
        "front/test_modern_fates.py::test_who_vanishes_at_any_step_of_a_call_has_it_by_asking_again",
    ),
    mutant(
        "who begins to wait for a request that has ended hears nothing of that",
        "tools/common/registry.py",
        "            act(self.was_written)\n",
        "            pass\n",
        "front/test_modern_fates.py"
        "::test_who_is_shown_one_server_and_vanishes_at_any_step_has_its_call_run_once",
    ),
    mutant(
        "what is said before an answer makes no stream of it",
        "front/modern/exchange.py",
        "        self._become_stream()\n        self._watching",
        "        self._watching",
        "front/test_modern_fates.py::test_what_is_said_in_the_tick_of_the_answer_comes_before_it",
    ),
)

"""Bugs of questions that clients are asked themselves."""

from __future__ import annotations

from . import mutant

_MACHINE = "races/test_relay_machine.py"
_SESSION = "session/questions/test_relay.py::"
_HANDSHAKE = "front/asking/test_backchannel.py::"
_PASSED = "front/faces/one_server/test_passed.py::"
_DIALOGS = "front/asking/test_dialogs.py::"
_MODERN = "front/asking/test_interrupted.py::"
_LOST = "front/asking/test_round_fates.py::"

RELAY = (
    mutant(
        "a question is put to two who can answer",
        "session/questions/relay.py",
        "        if one.asking is not None or one.is_refused or not question.is_open:\n",
        "        if one.is_refused or not question.is_open:\n",
        _MACHINE,
    ),
    mutant(
        "a client is not told that it is not asked any more",
        "front/asking/backchannel.py",
        "            self.channel.note(note, sent.about)\n",
        "            pass\n",
        f"{_DIALOGS}test_it_is_told_once_that_it_is_not_asked_any_more",
    ),
    mutant(
        "a question is answered before its client is told that it is not asked",
        "session/questions/questions.py",
        "            question.withdraw()\n",
        "            pass\n",
        f"{_SESSION}test_it_is_told_that_before_the_server_has_the_answer",
    ),
    mutant(
        "a client that has joined again is not asked again",
        "front/asking/backchannel.py",
        "                sent.slot.fail(_Lost())\n",
        "                pass\n",
        f"{_DIALOGS}test_one_that_has_lost_its_streams_is_asked_anew_as_it_joins",
    ),
    mutant(
        "a client is asked again what it has refused",
        "session/questions/relay.py",
        "        one.is_refused = True\n",
        "        pass\n",
        _MACHINE,
    ),
    mutant(
        "what a client has answered is not compared with the form",
        "session/questions/answers.py",
        '    return state, {**answer, "content": await fitting(question, given)}\n',
        "    return state, dict(answer)\n",
        _MACHINE,
    ),
    mutant(
        "a client is asked to open a page, which it cannot",
        "session/questions/relay.py",
        '            return "url" in said\n',
        "            return True\n",
        f"{_SESSION}test_only_what_a_client_says_that_it_can_is_put_to_it",
    ),
    mutant(
        "a call waits no longer because its client is asked",
        "session/calls/call.py",
        "        return any(not question.is_relayed for question in self.open_questions)\n",
        "        return bool(self.open_questions)\n",
        f"{_SESSION}test_a_call_goes_on_waiting_for_its_client_within_its_patience",
    ),
    mutant(
        "what a client says of its roots overrides what was set by tool",
        "session/servers/roots.py",
        "        if by_client and (self._is_by_tool or choice == self._choice):\n",
        "        if by_client and choice == self._choice:\n",
        f"{_HANDSHAKE}test_a_client_is_asked_for_its_roots_once_and_when_they_change",
    ),
    mutant(
        "the state of a request of another principal is taken",
        "front/asking/interrupted.py",
        "attrs.field(factory=OrderedDict, init=False)\n",
        "attrs.field(default=OrderedDict(), init=False)\n",
        f"{_MODERN}test_a_state_is_of_one_request_alone",
    ),
    mutant(
        "the state of another request of the same client is taken",
        "front/asking/interrupted.py",
        "        if found is None or found.of != _repeated(asked):\n",
        "        if found is None:\n",
        f"{_MODERN}test_a_state_is_of_one_request_alone",
    ),
    mutant(
        "a retry makes another call",
        "front/asking/interrupted.py",
        "        one = owner.find(asked)\n",
        "        owner.find(asked)\n        one = owner.begin(asked, work, front.face.view)\n",
        f"{_MODERN}test_a_retry_with_the_answer_continues_the_same_call",
    ),
    mutant(
        "a state outlives its question",
        "front/asking/rounds.py",
        "        self._forget_states()\n        if not self._waiting:\n",
        "        if not self._waiting:\n",
        f"{_MODERN}test_a_state_is_dead_with_its_question_and_the_call_becomes_a_task",
    ),
    mutant(
        "the time in which a client answers counts as waiting",
        "front/asking/rounds.py",
        "                self._patience.stop()\n",
        "                pass\n",
        f"{_MODERN}test_patience_runs_only_while_somebody_waits",
    ),
    mutant(
        "who was asked in an answer that was lost is not asked again",
        "front/asking/rounds.py",
        '            self._scope.cancel("asked in an answer that nobody has")\n',
        "            pass\n",
        f"{_LOST}test_who_was_asked_in_an_answer_that_was_lost_is_asked_again",
    ),
    mutant(
        "a result that a client has lost is not there for its retry",
        "front/asking/rounds.py",
        "            self.owner.keep(self, self._states)\n",
        "            pass\n",
        f"{_LOST}test_who_has_lost_the_answer_to_a_retry_sends_it_again",
    ),
    mutant(
        "what a modern server asks is called otherwise",
        "front/asking/rounds.py",
        "self.puts.key(question.key or question.id, question.id)",
        "self.puts.key(question.id, question.id)",
        f"{_MODERN}test_what_a_modern_server_asks_has_the_name_that_it_gave_it",
    ),
    mutant(
        "a client is asked although its view is not to be",
        "config/settings.py",
        "        return said or general\n",
        "        return general\n",
        f"{_HANDSHAKE}test_it_may_be_so_for_one_view_unless_a_server_has_it_otherwise",
    ),
    mutant(
        "a client that has chosen roots by tool is asked for them",
        "session/session.py",
        "        if not self.told_roots.is_by_tool:\n",
        "        if True:\n",
        f"{_MODERN}test_a_client_that_has_roots_is_asked_for_them",
    ),
    mutant(
        "the state of a modern server's round is good for another request",
        "front/faces/one_server/passed.py",
        " or found.request.said != said:\n",
        ":\n",
        f"{_PASSED}test_it_holds_for_the_request_alone_that_it_was_given_to",
    ),
    mutant(
        "the state of a modern server's round outlives the result",
        "front/faces/one_server/passed.py",
        "            before.request.end(self._open)\n",
        "            pass\n",
        f"{_PASSED}test_it_may_come_again_until_there_is_a_result",
    ),
    mutant(
        "what a modern server has sealed goes to its client",
        "front/faces/one_server/passed.py",
        "STATE: self._name(request, state)}",
        'STATE: state or ""}',
        f"{_PASSED}test_the_state_of_a_server_has_another_name_outside",
    ),
    mutant(
        "a modern server is told that its client can all that we can",
        "backend/connections/client.py",
        "ours if capabilities is None else capabilities",
        "ours",
        "backend/connections/test_client.py"
        "::test_a_modern_backend_is_asked_in_the_name_of_a_client_that_answers_for_itself",
    ),
    mutant(
        "a client is sent away before it knows where to come again",
        "front/handshake/stream.py",
        "        if self.is_known:\n            self.known()\n",
        "        self.known()\n",
        "front/handshake/test_streams.py::test_a_pause_sends_its_reader_away_once_it_can_come_again",
    ),
    mutant(
        "a round asks by a key that another one had",
        "front/asking/puts.py",
        "        key = otherwise if wanted in self._keys else wanted\n",
        "        key = wanted\n",
        "front/test_task_rounds.py::test_two_rounds_have_two_keys",
    ),
    mutant(
        "a task whose time is over is told to be cancelled",
        "front/tasks.py",
        '    TaskState.EXPIRED: "failed",',
        '    TaskState.EXPIRED: "cancelled",',
        "front/test_tasks.py::test_one_whose_time_is_over_has_failed",
    ),
)

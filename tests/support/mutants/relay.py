"""Bugs of questions that clients are asked themselves."""

from __future__ import annotations

from . import mutant

_MACHINE = "races/test_relay_machine.py"
_SESSION = "session/test_relay.py::"
_HANDSHAKE = "front/asking/test_backchannel.py::"
_MODERN = "front/asking/test_interrupted.py::"

RELAY = (
    mutant(
        "a question is put to two who can answer",
        "session/relay.py",
        "        if one.asking is not None or one.is_refused or not question.is_open:\n",
        "        if one.is_refused or not question.is_open:\n",
        _MACHINE,
    ),
    mutant(
        "a client is not told that it is not asked any more",
        "front/asking/backchannel.py",
        "                self.channel.note(note, about)\n",
        "                pass\n",
        _MACHINE,
    ),
    mutant(
        "a client that has joined again is not asked again",
        "front/asking/backchannel.py",
        "                slot.fail(_Lost())\n",
        "                pass\n",
        _MACHINE,
    ),
    mutant(
        "a client is asked again what it has refused",
        "session/relay.py",
        "        one.is_refused = True\n",
        "        pass\n",
        _MACHINE,
    ),
    mutant(
        "what a client has answered is not compared with the form",
        "session/questions.py",
        '    return state, {**answer, "content": await fitting(question, given)}\n',
        "    return state, dict(answer)\n",
        _MACHINE,
    ),
    mutant(
        "a client is asked to open a page, which it cannot",
        "session/relay.py",
        '            return "url" in said\n',
        "            return True\n",
        f"{_SESSION}test_only_what_a_client_says_that_it_can_is_put_to_it",
    ),
    mutant(
        "a call waits no longer because its client is asked",
        "session/call.py",
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
        "        owner.find(asked)\n        one = owner.begin(asked, work, is_alone=is_alone)\n",
        f"{_MODERN}test_a_retry_with_the_answer_continues_the_same_call",
    ),
    mutant(
        "a state outlives its question",
        "front/asking/interrupted.py",
        "        self.owner.forget(self._states)\n        if not self._waiting:\n",
        "        if not self._waiting:\n",
        f"{_MODERN}test_a_state_is_dead_with_its_question_and_the_call_becomes_a_task",
    ),
    mutant(
        "the time in which a client answers counts as waiting",
        "front/asking/interrupted.py",
        "                self._patience.stop()\n",
        "                pass\n",
        f"{_MODERN}test_patience_runs_only_while_somebody_waits",
    ),
)

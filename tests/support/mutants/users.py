"""Bugs that people would meet whose machine, client or way to start us is not ours."""

from __future__ import annotations

from . import mutant

_STARTS = "backend/children/test_starts.py::"
_START = "backend/children/test_start.py::"
_INHERITED = "model/test_inherited.py::"
_IN_TIME = "tools/test_answers_in_time.py::"
_BRIDGE = "bridge/test_bridge.py::"

USERS = (
    mutant(
        "all programs start at once",
        "backend/children/starts.py",
        "        while self._waiting and len(self._starting) < self.most:\n",
        "        while self._waiting:\n",
        f"{_STARTS}test_owners_take_turns",
    ),
    mutant(
        "whoever came first has all of its programs started before those of others",
        "backend/children/starts.py",
        "            owner = min(self._waiting, key=lambda each: "
        "(held[each], self._served.get(each, 0)))\n",
        "            owner = next(iter(self._waiting))\n",
        f"{_STARTS}test_owners_take_turns",
    ),
    mutant(
        "who no longer waits to start has a turn",
        "backend/children/starts.py",
        "        self._starting.discard(place)\n        self._no_longer_waits(place)\n",
        "        self._starting.discard(place)\n",
        f"{_STARTS}test_who_gives_up_waiting_takes_no_turn_and_nothing_is_kept",
    ),
    mutant(
        "a program that hangs as it starts keeps others from starting",
        "backend/children/start.py",
        "min(self._worked + IDLE, self._began + HELD)",
        "self._began + HELD",
        f"{_START}test_who_hangs_keeps_nobody_from_starting",
    ),
    mutant(
        "a program that never stops to compute as it starts keeps others from starting",
        "backend/children/start.py",
        "min(self._worked + IDLE, self._began + HELD)",
        "self._worked + IDLE",
        f"{_START}test_who_hangs_keeps_nobody_from_starting",
    ),
    mutant(
        "an installer is killed while it works",
        "backend/children/start.py",
        "        longest = max(self._longest, self._patience)\n",
        "        longest = self._patience\n",
        f"{_START}test_a_first_start_that_works_is_waited_for",
    ),
    mutant(
        "programs do not inherit which certificates to trust",
        "model/inherited.py",
        "USUAL = (*PROXIES, *CERTIFICATES, *REGISTRIES, *_OTHERS)\n",
        "USUAL = (*PROXIES, *REGISTRIES, *_OTHERS)\n",
        f"{_INHERITED}test_what_installers_and_tls_need_is_usual",
    ),
    mutant(
        "inherit_env hands on what was said to us",
        "model/inherited.py",
        "        and not is_ours(name)\n",
        "",
        "backend/children/test_spec.py::test_all_is_all_but_our_own_and_our_tokens",
    ),
    mutant(
        "inherit_env hands on our token under another name",
        "model/inherited.py",
        "        and value not in tokens\n",
        "",
        f"{_INHERITED}test_a_token_of_ours_goes_nowhere_whatever_it_is_called",
    ),
    mutant(
        "inherit_env of a server cannot be less than that of all",
        "model/inherited.py",
        "        return of_all if own is None else own\n",
        '        return of_all if own is None or of_all == "all" else own\n',
        f"{_INHERITED}test_lists_add_up_and_a_list_of_its_own_replaces_all",
    ),
    mutant(
        "a call is held for longer than its client waits",
        "tools/execution.py",
        "    wait_ms = min(timeout_ms, request.answer_ms)\n",
        "    wait_ms = timeout_ms\n",
        f"{_IN_TIME}test_a_slow_call_becomes_a_task_in_time",
    ),
    mutant(
        "await_activity is held for longer than its client waits",
        "tools/news/activity.py",
        "    wait_ms = min(timeout_ms, request.answer_ms)\n",
        "    wait_ms = timeout_ms\n",
        f"{_IN_TIME}test_so_does_a_wait_for_anything",
    ),
    mutant(
        "a client that waits for long gets a task after as short a time as any",
        "tools/common/clients.py",
        "        return max(limits.answer_ms, self.patience_ms)\n",
        "        return limits.answer_ms\n",
        f"{_IN_TIME}test_a_known_client_is_held_as_long_as_it_was_seen_to_wait",
    ),
    mutant(
        "the session of a window stays when the window is gone",
        "bridge/conversation.py",
        "        for target, headers in kept:\n",
        "        for target, headers in kept[:0]:\n",
        f"{_BRIDGE}test_each_window_has_a_session_of_its_own_that_ends_with_it",
    ),
    mutant(
        "all windows share the workspace of their daemon",
        "bridge/conversation.py",
        'f"stdio-{os.urandom(8).hex()}"',
        '"stdio"',
        f"{_BRIDGE}test_each_window_has_a_session_of_its_own_that_ends_with_it",
    ),
    mutant(
        "a window is lost when its daemon is started anew",
        "bridge/conversation.py",
        "                session = self._another(session)\n",
        "                raise\n",
        f"{_BRIDGE}test_a_daemon_that_is_started_anew_is_joined_again",
    ),
    mutant(
        "what a window cancels goes on",
        "bridge/relay.py",
        "        self._conversation.say(notice, version_of(asked.message))\n",
        "",
        f"{_BRIDGE}test_a_slow_call_is_told_of_its_progress_and_can_be_cancelled",
    ),
)

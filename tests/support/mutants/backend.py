"""Bugs of connections to backends, and of what is started for them."""

from __future__ import annotations

from . import mutant

BACKEND = (
    # Calls
    mutant(
        "what may have run is run again",
        "backend/private.py",
        "        except NotRun:\n",
        "        except NotRun.__bases__:\n",
        "races/test_backend_machine.py",
    ),
    mutant(
        "a cancelled call goes on at its backend",
        "backend/connections/client.py",
        '            self.notify("notifications/cancelled", gone)\n',
        "",
        "session/test_server_fates.py::test_a_cancellation_and_the_answer_to_a_task",
    ),
    mutant(
        "the loss of a connection is noticed by calls and told to nobody",
        "backend/connections/connect.py",
        "        self._witness.over.set()\n        await",
        "        await",
        "races/test_backend_machine.py",
    ),
    mutant(
        "what a server has answered as its connection ended is taken for a loss",
        "backend/connections/witness.py",
        "            if request_id in self._waiting and self.over.is_set():\n",
        "            if self.over.is_set():\n",
        "backend/connections/test_witness.py::test_what_was_answered_in_the_tick_of_the_loss_was_answered",
    ),
    mutant(
        "what a server has refused is shown to it again",
        "backend/http/transport.py",
        "            await response.aclose()\n            await self._show(request)\n",
        "            await response.aclose()\n",
        "backend/http/test_auth.py::test_what_has_expired_is_shown_anew_and_nobody_notices",
    ),
    mutant(
        "a refusal for good leaves the connection as it was",
        "backend/http/transport.py",
        "        self._noting.check_let_in(response)\n",
        "",
        "backend/http/test_auth.py::test_what_is_refused_for_good_is_the_end_and_says_so",
    ),
    mutant(
        "who waits for a server that is removed is forgotten",
        "backend/supervisor.py",
        "            self._try.fail(self.gone())\n",
        "",
        "backend/test_backend_fates.py",
    ),
    # Connections
    mutant(
        "the time to connect goes on once it is connected",
        "backend/link.py",
        "                    self._scope.deadline = math.inf\n",
        "",
        "races/test_backend_machine.py",
    ),
    mutant(
        "a server that is removed in the tick of a failure waits for somebody to want it",
        "backend/lifecycle.py",
        "        return TODO[self.state] if self.leaving is None else Todo.END\n",
        "        return TODO[self.state]\n",
        "backend/test_backend_fates.py",
    ),
    mutant(
        "a new connection leaves the old one open beside it",
        "backend/supervisor.py",
        "            life.current.leave(RECONNECT)",
        "            life.loses(life.current, 0, 0, RECONNECT)",
        "session/test_server_fates.py::test_a_loss_and_the_wish_for_a_new_connection",
    ),
    mutant(
        "who comes while a try waits for its time waits with it",
        "backend/supervisor.py",
        "            self.wake()\n            await self._try",
        "            await self._try",
        "races/test_backend_machine.py",
    ),
    mutant(
        "a loss is told twice",
        "backend/lifecycle.py",
        "        self.state = step(LINK, self.state, LinkState.TOLD)\n",
        "",
        "races/test_backend_machine.py",
    ),
    mutant(
        "failed tries are counted for ever",
        "backend/retries.py",
        "            self.attempt, self._delays = 0, self._new_delays()\n",
        "            pass\n",
        "backend/test_backend.py::test_the_count_starts_again_after_a_minute_connected",
    ),
    mutant(
        "a restart is told as a network that blinked",
        "backend/reconciliation.py",
        '        return "network_blip" if status is not None and status < 300 else "restart"\n',
        '        return "network_blip"\n',
        "backend/test_reconciliation.py::test_a_restart_is_told_from_a_network_that_blinked",
    ),
    mutant(
        "subscriptions do not survive a reconnect",
        "backend/reconciliation.py",
        "                await backend.preferences.repeat(self.client)\n",
        "                pass\n",
        "backend/test_reconciliation.py::test_what_was_subscribed_and_set_is_so_again_when_it_is_told",
    ),
    mutant(
        "what a server speaks is remembered although it no longer holds",
        "backend/connections/connect.py",
        "            shared.eras.pop(key, None)\n",
        "            pass\n",
        "backend/connections/test_connect.py::test_a_verdict_that_no_longer_holds_is_forgotten",
    ),
    # Health
    mutant(
        "a health check ends a program that computes",
        "backend/connections/health.py",
        "        if self.failures >= MISSES and self.gives_up:\n",
        "        if self.failures >= MISSES:\n",
        "races/test_backend_machine.py",
    ),
    mutant(
        "a peer that is silent for ever is never given up",
        "backend/connections/health.py",
        "        if self.failures >= MISSES and self.gives_up:\n",
        "        if False:\n",
        "backend/connections/test_health.py::test_a_silent_peer_is_degraded_and_then_connected_again",
    ),
    mutant(
        "an answer from a lost connection is taken for health",
        "backend/connections/health.py",
        "        if not client.over.is_set():\n            self._heard()\n",
        "        self._heard()\n",
        "backend/connections/test_health.py::test_an_answer_that_comes_after_the_loss_is_no_health",
    ),
    # Lists
    mutant(
        "everybody who asks for a list fetches it",
        "backend/catalogue/catalog.py",
        "        while (flight := self._flights.get(name)) is not None:\n",
        "        while False and (flight := self._flights[name]):\n",
        "backend/catalogue/test_catalog.py::test_those_who_ask_at_once_share_one_fetch",
    ),
    mutant(
        "a change that is told while the pages come is forgotten",
        "backend/catalogue/catalog.py",
        "            if self._flights.get(name) is flight:\n                self._fresh",
        "            if True:\n                self._fresh",
        "backend/catalogue/test_catalog.py::test_pages_older_than_a_change_are_not_taken_for_new",
    ),
    mutant(
        "who waits for a list waits for ever when the one who fetches it gives up",
        "backend/catalogue/catalog.py",
        "            flight.fail(_Abandoned())\n",
        "",
        "backend/catalogue/test_catalog.py::test_those_who_ask_at_once_share_one_fetch",
    ),
    mutant(
        "a tool that is hidden can be called",
        "tools/execution.py",
        "    if not backend.catalog.allows(asked.tool):\n",
        "    if False:\n",
        "tools/test_add_server.py::test_only_allowed_tools_are_listed_and_called",
    ),
    # Programs
    mutant(
        "what a dead child leaves in its group lives on",
        "backend/children/process.py",
        "        signal_group(self.pid, signal.SIGKILL)\n        self.exit = Exit.of(status)\n",
        "        self.exit = Exit.of(status)\n",
        "backend/children/test_process.py::test_what_a_dead_child_leaves_behind_in_its_group_is_ended",
    ),
    mutant(
        "only the child is signalled, and not its group",
        "backend/children/process.py",
        "        os.killpg(leader, number)\n",
        "        os.kill(leader, number)\n",
        "backend/children/test_process.py::test_the_whole_group_goes_with_its_child",
    ),
    mutant(
        "the helper is not told of a child",
        "backend/children/reaper.py",
        '        self._tell(f"+{kin.words}")\n        return kin\n',
        "        return kin\n",
        "faults/test_orphans.py::test_without_its_environment_it_is_ended_by_its_group",
    ),
    mutant(
        "a child sees the environment of the daemon",
        "backend/children/spec.py",
        "    return inherited(ours, server.inherit_env or (), tokens) | dict(server.env)\n",
        "    return dict(ours) | dict(server.env)\n",
        "backend/children/test_spec.py",
    ),
    mutant(
        "a line that is too long is cut, and the connection goes on",
        "backend/children/process.py",
        "                if len(line) > most:\n",
        "                if False:\n",
        "backend/children/test_process.py::test_what_came_before_a_too_long_line_is_delivered",
    ),
    # Urls
    mutant(
        "a redirect leads to another server",
        "backend/http/transport.py",
        "                await self._noting.turn(request, post)\n",
        "                await self._noting.turn(request, post)\n"
        '                options["follow_redirects"] = True\n',
        "backend/connections/test_failures.py::test_a_redirect_to_somewhere_else_is_not_followed",
    ),
    mutant(
        "an address inside of another address is not looked at",
        "model/addresses.py",
        "    if isinstance(plain, IPv6Address):\n",
        "    if False:\n",
        "model/test_addresses.py",
    ),
    mutant(
        "a name is judged, and resolved again to connect to it",
        "backend/http/network.py",
        "list(dict.fromkeys(str(each) for each in addresses if objection(each) is None))\n",
        "[host] if any(objection(each) is None for each in addresses) else []\n",
        "backend/http/test_network.py::test_a_name_is_asked_for_once_and_what_was_judged_is_connected_to",
    ),
    mutant(
        "a server says how often it is asked for a stream",
        "backend/http/transport.py",
        "            await self._pace(post).turn()\n",
        "            pass\n",
        "backend/http/test_transport.py::"
        "test_a_stream_that_ends_at_once_is_asked_for_no_faster_than_configured",
    ),
    mutant(
        "a stream that ends at once is asked for as often as ever",
        "backend/http/pace.py",
        "        if self._delays is None or lasted > RETRY_RESET_MS / 1000:\n",
        "        if True:\n",
        "backend/http/test_transport.py::"
        "test_a_stream_that_ends_at_once_is_asked_for_no_faster_than_configured",
    ),
    mutant(
        "a line feed after a carriage return is skipped twice",
        "backend/http/event_stream.py",
        '            self._after_cr = whole.endswith(b"\\r")\n',
        '            self._after_cr = whole.endswith((b"\\r", b"\\n")) and after_cr\n',
        "backend/http/test_event_stream.py",
    ),
    mutant(
        "children take the files that clients need to connect",
        "backend/children/files.py",
        "(soft // 2 - OURS) // EACH",
        "soft",
        "faults/test_files.py::test_more_programs_than_files_are_refused_by_name",
    ),
    mutant(
        "programs are given our own limit of files",
        "backend/children/process.py",
        "    restore_limit(child.pid)\n",
        "",
        "faults/test_files.py::test_the_daemon_raises_its_limit_and_programs_keep_theirs",
    ),
)

"""Bugs of sessions and of what they own."""

from __future__ import annotations

from . import mutant

SESSION = (
    # Slots and feeds
    mutant(
        "a slot takes a second writer",
        "waits/slot.py",
        "        if self._outcome is not None:\n            return False\n",
        "",
        "waits/test_slot.py",
    ),
    mutant(
        "a reader looks, is interrupted, and waits for what has happened meanwhile",
        "waits/feed.py",
        "            await self._news.wait()\n",
        "            await trio.lowlevel.checkpoint()\n            await self._news.wait()\n",
        "waits/test_feed.py::test_no_wake_up_is_lost_whoever_runs_first",
    ),
    mutant(
        "a feed that is closed does not wake its readers",
        "waits/feed.py",
        "        self._closed.set()\n        self._news.set()\n",
        "        self._closed.set()\n",
        "session/test_manager.py::test_who_waits_in_another_nursery_is_let_go",
    ),
    # Firewalls
    mutant(
        "a bug in one task swallows the cancellation of those beside it",
        "waits/firewall.py",
        "        if rest is not None:\n            raise rest  # mostly cancellations\n",
        "",
        "waits/test_firewall.py::test_a_cancellation_passes_out_of_a_group_with_a_bug",
    ),
    mutant(
        "who shares a nursery is not behind a firewall",
        "waits/firewall.py",
        "    with firewall:\n        await run(*args)\n",
        "    await run(*args)\n",
        "waits/test_firewall.py::test_siblings_go_on",
    ),
    mutant(
        "what has to last is gone after a bug",
        "waits/firewall.py",
        "        if firewall.log_id is None:\n            return\n",
        "        return\n",
        "waits/test_firewall.py::test_what_has_to_last_begins_again_with_a_pause",
    ),
    mutant(
        "who waits for a call with a bug is told that the session has ended",
        "session/calls.py",
        "            with self._wall(call, partial(self._crashed, call)):\n",
        "            with self._wall(call):\n",
        "session/test_calls_end.py::test_a_bug_in_a_call_costs_that_call_and_is_heard_by_who_waits",
    ),
    mutant(
        "a question that nobody could be told of stays open",
        "session/questions.py",
        "            if not self.publish(server, asked(question.id, *told)):\n",
        "            if self.publish(server, asked(question.id, *told)) is None:\n",
        "test_firewalls.py",
    ),
    mutant(
        "a try to connect that has a bug is not seen to have failed",
        "backend/link.py",
        "        self.failure = Failure(internal(log_id))\n",
        "        pass\n",
        "test_firewalls.py",
    ),
    mutant(
        "events that cannot be written go back, and break every response",
        "tools/response.py",
        "lambda _: delivery.lose()",
        "lambda _: delivery.give_back()",
        "test_firewalls.py",
    ),
    # Calls
    mutant(
        "nobody settles the slot of a call whose session ends",
        "session/calls.py",
        "            self._settle(\n                call,\n                TaskState.CANCELLED,\n",
        "            _ = (\n                call,\n                TaskState.CANCELLED,\n",
        "session/test_calls_end.py::test_who_waits_elsewhere_hears_that_the_session_has_ended",
    ),
    mutant(
        "a cancel acts first and decides later",
        "session/calls.py",
        "        won = self._settle(call, TaskState.CANCELLED, error)\n        if won:\n",
        "        won = not call.slot.is_settled\n        if won:\n",
        "session/test_call_fates.py::test_completion_and_cancel",
    ),
    mutant(
        "a cancelled task is not stopped at its backend",
        "session/calls.py",
        "        if won:\n            call.scope.cancel(reason)\n",
        "",
        "session/test_server_fates.py::test_a_cancellation_and_the_answer_to_a_task",
    ),
    mutant(
        "a second fate of a call is told as well",
        "session/calls.py",
        "        if call.slot.is_settled:\n            return False\n        fate",
        "        fate",
        "session/test_call_fates.py::test_completion_and_cancel",
    ),
    mutant(
        "a call becomes a task although it is over",
        "session/calls.py",
        "        if call.slot.is_settled:\n            self._keep(call)\n            return\n",
        "",
        "session/test_call_fates.py::test_a_client_that_gives_up_and_completion",
    ),
    mutant(
        "the time of a task does not count from its promotion",
        "session/calls.py",
        "        call.scope.deadline = min(call.hard_end, call.expires)\n",
        "",
        "session/test_calls.py::test_a_promotion_before_its_time_moves_the_expiry_too",
    ),
    mutant(
        "a call is born without a deadline",
        "session/calls.py",
        "        call.scope.deadline = min(call.hard_end, now + patience + ttl)\n",
        "",
        "session/test_calls.py::test_the_hard_end_comes_before_the_promotion",
    ),
    mutant(
        "a call goes on although its request is cancelled",
        "session/calls.py",
        '                self._abandon(call, "request cancelled by the client")\n',
        "                pass\n",
        "session/test_calls.py::test_a_call_whose_request_is_cancelled_is_cancelled",
    ),
    mutant(
        "a call stays in memory when it has been answered",
        "session/calls.py",
        "            if call.task is None:\n                del self._calls[call.id]\n",
        "",
        "session/test_calls.py::test_a_result_in_time_is_returned_and_nothing_remains",
    ),
    # Questions
    mutant(
        "the scope decides about a question, and not its slot",
        "session/questions.py",
        "                    await question.slot.wait()\n                # No checkpoint",
        "                    await question.slot.wait()\n"
        "                if trio.current_time() >= question.asked_at + (\n"
        "                    self.limits.question_timeout_ms / 1000\n"
        "                ):\n"
        "                    question.slot, question.state = Slot(), QuestionState.PENDING\n"
        "                    self._open[question.id] = question\n"
        "                # No checkpoint",
        "session/test_question_fates.py::test_an_answer_and_the_expiry_of_its_question",
    ),
    mutant(
        "a question has no deadline",
        "session/questions.py",
        "            with trio.move_on_after(self.limits.question_timeout_ms / 1000):\n",
        "            with trio.CancelScope():\n",
        "session/test_question_fates.py::test_an_answer_and_the_expiry_of_its_question",
    ),
    mutant(
        "a question stays open when nobody waits for its answer any more",
        "session/questions.py",
        "                self._abandoned(question, abandoned())\n",
        "                pass\n",
        "session/test_questions.py::test_a_question_that_is_withdrawn_is_cancelled",
    ),
    mutant(
        "a second answer to a question is taken for the first",
        "session/questions.py",
        "        if not self._close(question, state, result):\n"
        "            self.get(question.kind, question.id)  # raises: somebody was first\n",
        "        self._close(question, state, result)\n",
        "session/test_questions.py::test_a_late_answer_hears_what_became_of_the_question",
    ),
    # Everybody waits
    mutant(
        "a call computes for a while in the one event loop",
        "session/calls.py",
        "                        self._settle(call, TaskState.COMPLETED, result)\n",
        "                        self._settle(call, TaskState.COMPLETED, result)\n"
        "                        sum(range(50_000_000))\n",
        "session/test_calls_limits.py",
    ),
    mutant(
        "who collects the garbage of all is blamed for all of it",
        "waits/watchdog.py",
        "            self._collected += seconds\n",
        "            pass\n",
        "waits/test_watchdog.py",
    ),
    mutant(
        "steps of a task are measured from its first one",
        "waits/watchdog.py",
        "        self._collected = 0.0\n        self._since = self.clock()\n",
        "        self._collected = 0.0\n",
        "waits/test_watchdog.py",
    ),
    mutant(
        "everybody waits until garbage was looked for in all that was imported",
        "commands/common.py",
        "    gc.freeze()\n",
        "    pass\n",
        "commands/test_common.py",
    ),
    # The log
    mutant(
        "what waits for who does not read the log has no bound",
        "logs/writer.py",
        "            if self._is_full or (self._size and self._size + len(data) > ROOM):\n",
        "            if False:\n",
        "logs/test_writer.py::test_nobody_waits_for_one_who_does_not_read",
    ),
    mutant(
        "nobody is told which lines a full disk has cost",
        "logs/writer.py",
        "                    self._lost += max(0, unwritten) + lost\n",
        "                    pass\n",
        "logs/test_writer.py::test_a_disk_that_was_full_is_told_what_it_misses",
    ),
    mutant(
        "who reads nothing keeps the process from ending",
        "logs/writer.py",
        "            self._thread.join(LAST_WORDS)\n",
        "            self._thread.join()\n",
        "logs/test_stderr.py::test_call_prints_its_result_and_ends",
    ),
    mutant(
        "a peer can make a line as long as it likes",
        "logs/lines.py",
        "        return cut(value)\n",
        "        return value\n",
        "logs/test_lines.py",
    ),
    mutant(
        "a value that cannot be shown breaks whoever logs it",
        "logs/lines.py",
        "        except Exception as error:",
        "        except KeyError as error:",
        "logs/test_lines.py",
    ),
    mutant(
        "what happens often is a line each time",
        "logs/frequency.py",
        "            return [kind.take(now)] if kind.due <= now else []\n",
        "            return [kind.take(now)]\n",
        "logs/test_frequency.py",
    ),
    mutant(
        "whoever invents kinds of things that happen often gets a line for each",
        "logs/frequency.py",
        "                key, fields = (event,), {}\n",
        "                pass\n",
        "logs/test_frequency.py",
    ),
    # Events
    mutant(
        "events are taken and left where they were, and delivered twice",
        "session/events.py",
        "            taken.append(self._pending.pop())\n",
        "            taken.append(self._pending.oldest())\n",
        "session/test_events.py::test_what_one_response_has_taken_no_other_gets",
    ),
    mutant(
        "an eviction is counted when it happens, and again when its response fails",
        "session/events.py",
        "            self._pending.pop()  # older than anything else that is pending, too\n"
        "            self._lost += 1\n",
        "            self._pending.pop()\n"
        "        if not kept.delivered:\n            self._lost += 1\n",
        "session/test_events.py::test_what_is_evicted_on_its_way_is_lost_only_if_it_does_not_arrive",
    ),
    mutant(
        "what comes back is delivered last",
        "session/events.py",
        "        heapq.heappush(self._waiting, (kept.event.id, kept))\n",
        "        self._waiting.append((kept.event.id, kept))\n",
        "session/test_events.py::test_events_of_a_response_that_is_not_written_come_back_in_their_place",
    ),
    mutant(
        "who waits is not woken by events that come back",
        "session/events.py",
        "            self._owner.triggers.nudge()\n",
        "            pass\n",
        "session/test_events.py::test_who_waits_while_they_are_away_wakes_when_they_come_back",
    ),
    mutant(
        "a client's cursor passes over what came back",
        "session/events.py",
        "        last_event_id = max(self._newest_told, events[-1].id) if events",
        "        last_event_id = events[-1].id if events",
        "session/test_events.py",
    ),
    mutant(
        "a notice collapses into one that was delivered before",
        "session/events.py",
        "            heapq.heappop(alike)\n            if not alike:\n"
        "                del self._notices[kept.notice]\n",
        "            pass\n",
        "session/test_events.py::test_notices_collapse_only_while_the_first_is_undelivered",
    ),
    mutant(
        "events of one millisecond do not sort",
        "model/ids.py",
        "            self._counter += 1\n            if",
        "            if",
        "model/test_ids.py",
    ),
    # Timers, and what is kept
    mutant(
        "a timer that is deleted goes on sleeping",
        "session/timers.py",
        '            timer._scope.cancel("deleted")\n',
        "",
        "session/test_timers.py",
    ),
    mutant(
        "what is due sooner does not wake the sweeper",
        "session/sweeper.py",
        "        if due < self._due:\n            self._sooner.set()\n",
        "        pass\n",
        "session/test_sweeper.py::test_what_is_due_sooner_wakes_it",
    ),
    # Sessions
    mutant(
        "a session that has ended can still be found",
        "session/manager.py",
        "            del self._sessions[session.id]\n            logs",
        "            trio.lowlevel.current_trio_token().run_sync_soon(\n"
        "                self._sessions.pop, session.id, None\n"
        "            )\n            logs",
        "session/test_manager.py::test_ending_is_done_in_one_breath",
    ),
    mutant(
        "the end of a session takes along another one of its name",
        "session/manager.py",
        " and slot.is_settled and slot.peek() is session:\n",
        " and slot.is_settled:\n",
        "session/test_manager.py::test_a_name_can_be_used_again_while_the_old_session_closes",
    ),
    mutant(
        "two who open one session at once get one each",
        "session/manager.py",
        "                slot = self._sessions.get(session_id)\n                if slot is None:\n",
        "                slot = self._sessions.get(session_id)\n"
        "                await trio.lowlevel.checkpoint()\n                if slot is None:\n",
        "session/test_manager.py::test_racing_openers_get_one_session",
    ),
    mutant(
        "somebody is handed a session that has ended meanwhile",
        "session/manager.py",
        "                if self._sessions.get(session_id) is slot:\n",
        "                if True:\n",
        "session/test_manager.py::test_nobody_is_handed_a_session_that_ends_meanwhile",
    ),
    mutant(
        "a session makes room while somebody is about to get it",
        "session/manager.py",
        " if not s.has_work and s.id not in self._opening]",
        " if not s.has_work]",
        "session/test_manager.py",
        "session/test_idle.py",
    ),
    mutant(
        "a session ends as idle while a request is open",
        "session/session.py",
        "            self._requests\n            or self.calls.has_unsettled\n",
        "            self.calls.has_unsettled\n",
        "session/test_idle.py::test_work_keeps_a_session_and_idleness_counts_from_its_end",
    ),
    mutant(
        "the idle time is a deadline: whoever comes meanwhile is killed with the session",
        "session/manager.py",
        "            elif trio.current_time() >= session.idle_since + patience:\n",
        "            else:\n",
        "session/test_idle.py::test_a_session_ends_after_its_idle_time",
    ),
    mutant(
        "who waits for events is not told that the session has ended",
        "session/session.py",
        "        self.events.triggers.close()\n        self.calls.end()\n",
        "        self.calls.end()\n",
        "session/test_manager.py::test_ending_is_done_in_one_breath",
    ),
    mutant(
        "connections are cut at the end of their session, and not told to leave",
        "session/manager.py",
        "                        session.leave_backends(HURRIED)\n",
        "",
        "session/test_manager.py::test_what_a_session_runs_ends_with_it",
    ),
    mutant(
        "sessions share their connections",
        "session/session.py",
        "    backends: dict[str, Backend] = attrs.field(factory=dict, init=False)\n",
        "    backends: dict[str, Backend] = attrs.field(default={}, init=False)\n",
        "session/test_manager.py::test_sessions_share_nothing",
    ),
    mutant(
        "sessions share what their servers notify them of",
        "session/buffers.py",
        "    _heard: dict[str, deque[Heard]] = attrs.field(factory=dict, init=False)\n",
        "    _heard: dict[str, deque[Heard]] = attrs.field(default={}, init=False)\n",
        "session/test_manager.py::test_sessions_share_nothing",
    ),
    # Servers
    mutant(
        "a removal is told after another one of that name has come",
        "session/session.py",
        "        self.make_way(server.name)\n        self.publish",
        "        self.publish",
        "session/test_server_rivals.py::test_a_server_that_is_added_and",
    ),
    mutant(
        "a server that somebody has added is everybody's",
        "session/registry.py",
        "        return dict(self._added.get(principal, {})) | self._configured()\n",
        "        added = {n: s for each in self._added.values() for n, s in each.items()}\n"
        "        return added | self._configured()\n",
        "session/test_registry.py",
    ),
    mutant(
        "a reload connects anew what has not changed",
        "session/manager.py",
        "                if wanted.get(name) == backend.server:\n",
        "                if wanted.get(name) is backend.server:\n",
        "session/test_reload.py::test_what_has_not_changed_is_not_touched",
    ),
    mutant(
        "a server is added to a session that has ended while it connected",
        "session/manager.py",
        "            session.check_open()\n"
        "            self.registry.check(session.principal, server)\n        except",
        "            pass\n        except",
        "session/test_server_rivals.py::test_a_server_that_is_added_and",
    ),
    mutant(
        "a server that could not be added goes on trying, unseen",
        "session/manager.py",
        '            candidate.leave("not added", PATIENCE)\n',
        "",
        "session/test_server_races.py::test_adding_can_be_cancelled",
    ),
    mutant(
        "an allowlist matches the runner, whatever it runs",
        "session/spawning.py",
        "len(words) == len(entry.command) and all(map(matches, entry.command, words))",
        "all(map(matches, entry.command, words))",
        "session/test_registry.py::test_an_allowlist_matches_whole_command_lines",
    ),
    mutant(
        "a client sets the variables of a listed program",
        "session/spawning.py",
        "set(server.env) - set(entry.env)",
        "set[str]()",
        "session/test_registry.py::test_a_listed_command_line_gets_no_variables_of_clients",
    ),
    mutant(
        "an allowlist may let clients choose the PATH",
        "config/policy.py",
        'if "PATH" in self.env:',
        'if "PATH" in self.command:',
        "config/test_settings.py::test_a_problem_is_one_line_with_its_path",
    ),
    mutant(
        "a client chooses where a listed program runs",
        "session/spawning.py",
        "if server.cwd not in (None, entry.cwd):",
        "if entry.cwd is not None and server.cwd not in (None, entry.cwd):",
        "session/test_registry.py::test_a_listed_command_line_runs_in_no_folder_of_a_clients",
    ),
    mutant(
        "a wildcard of an allowlist stands for the source of a package, too",
        "model/globs.py",
        'character in "/:" or ',
        "",
        "session/test_registry.py::test_a_wildcard_is_no_way_out",
    ),
    mutant(
        "a program that may not be started any more is kept at a reload",
        "session/registry.py",
        "                if not _is_admitted(config, server):\n",
        "                if not server.name:\n",
        "session/test_registry.py::test_what_may_not_be_started_any_more_is_gone_after_a_reload",
    ),
    mutant(
        "a request that is no tool call waits for a server uncounted",
        "tools/registry.py",
        "        with request.session.calls.place():\n            return",
        "        if True:\n            return",
        "faults/test_counted.py::test_whatever_waits_for_a_server_takes_a_place",
    ),
    mutant(
        "a place that was taken is never given back",
        "session/calls.py",
        "            self._others -= 1\n",
        "            pass\n",
        "faults/test_counted.py::test_whatever_waits_for_a_server_takes_a_place",
    ),
    mutant(
        "a promotion names all tasks there are",
        "tools/servers.py",
        "        for task in tasks[-MAX_TASKS_SHOWN:]\n",
        "        for task in tasks\n",
        "tools/test_tasks.py::test_of_many_tasks_an_answer_names_the_newest",
    ),
)

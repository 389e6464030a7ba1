"""Bugs of connections that sessions share."""

from __future__ import annotations

from . import mutant

HUB, WIRE, LEASE = "backend/sharing/hub.py", "backend/sharing/wire.py", "backend/sharing/lease.py"
CLIENT, SHARING = "backend/sharing/client.py", "backend/sharing/sharing.py"
AUDIENCE = "backend/sharing/audience.py"
LEASES = "backend/sharing/test_leases.py"
QUESTIONS = "backend/sharing/test_questions.py"
NOTICES = "backend/sharing/test_notices.py"
PLACES = "backend/sharing/test_places.py"
NOTED = "backend/sharing/test_noted.py"
RECORDS = "model/timeline/records.py"

SHARED = (
    mutant(
        "requests of sessions that share a server have the same ids",
        CLIENT,
        "        self.speaks_with(self.common)\n",
        "",
        f"{LEASES}::test_calls_are_answered_to_whom_they_belong",
    ),
    mutant(
        "progress of a shared server is told to nobody who asked",
        CLIENT,
        "        callbacks.progress = wire.progress  #",
        "        #",
        f"{LEASES}::test_progress_is_told_to_who_asked",
    ),
    mutant(
        "another principal's session gets the same connection",
        SHARING,
        "self._hubs.get(principal, ()) if hub.server == server)\n        return",
        "sum(self._hubs.values(), []) if hub.server == server)\n        return",
        f"{LEASES}::test_nothing_is_shared_with_another_principal",
    ),
    mutant(
        "another entry of the same name gets the same connection",
        SHARING,
        "if hub.server == server)\n        return",
        "if hub.server.name == server.name)\n        return",
        f"{LEASES}::test_another_entry_of_the_same_name_is_another_connection",
    ),
    mutant(
        "the last lease that is given back closes nothing",
        HUB,
        "        self.backend.leave(reason, self._patience)\n",
        "",
        f"{LEASES}::test_it_starts_with_the_first_use_and_ends_a_while_after_the_last",
    ),
    mutant(
        "who comes in the tick in which a shared connection closes gets one that is closed",
        HUB,
        "            if self._is_over or not self.leases:\n",
        "            if True:\n",
        f"{LEASES}::test_who_comes_again_in_time_finds_it_warm",
    ),
    mutant(
        "a shared connection does not wait for who may come",
        HUB,
        "            if self._does_linger and not self.is_split:\n",
        "            if False:\n",
        f"{LEASES}::test_who_comes_again_in_time_finds_it_warm",
    ),
    mutant(
        "what a session had under way at a shared server goes on without it",
        CLIENT,
        "            scope.cancel(GONE)\n",
        "            pass\n",
        f"{QUESTIONS}::test_the_end_of_a_session_ends_its_question",
    ),
    mutant(
        "a question goes to the first who has a lease",
        WIRE,
        "        whose = at_work.pop() if len(at_work) == 1 else None\n",
        "        whose = next(iter(self.clients.values()), None)\n",
        f"{QUESTIONS}::test_who_alone_has_a_call_under_way_is_asked",
    ),
    mutant(
        "a question goes to one of those who have something under way",
        WIRE,
        "        whose = at_work.pop() if len(at_work) == 1 else None\n",
        "        whose = at_work.pop() if at_work else None\n",
        f"{QUESTIONS}::test_where_it_could_be_of_two_nobody_is_asked_and_the_server_is_split",
    ),
    mutant(
        "a question in the answer to a call goes to whom it could be of",
        WIRE,
        "        if related is not None:\n            return self._of_request(related)\n",
        "",
        f"{QUESTIONS}::test_a_question_in_the_answer_to_a_call_is_of_that_call",
    ),
    mutant(
        "what was given up asks somebody else",
        CLIENT,
        "        self.wire.doubts(request_id, self)\n",
        "        pass\n",
        f"{QUESTIONS}::test_what_was_given_up_may_still_ask",
    ),
    mutant(
        "what was given up is in doubt after its answer, too",
        "backend/connections/witness.py",
        "                self.given_up.discard(answered)\n",
        "",
        f"{QUESTIONS}::test_what_was_given_up_and_answered_is_over",
    ),
    mutant(
        "a session gets at the task of another one by its id",
        CLIENT,
        "        if task not in self.tasks:\n",
        "        if task is None:\n",
        f"{QUESTIONS}::test_a_task_of_another_session_is_not_there",
    ),
    mutant(
        "a split repeats a call that is under way",
        LEASE,
        "        self._note_over()\n        self._leave_hub_when_idle()\n",
        "        self._note_over()\n        self.hub.give_back(self, is_wanted=True)\n",
        f"{QUESTIONS}::test_where_it_could_be_of_two_nobody_is_asked_and_the_server_is_split",
        also=(
            (
                LEASE,
                "        except NotRun:\n",
                "        except NotRun.__bases__:\n",
            ),
        ),
    ),
    mutant(
        "who comes after a split shares the server with others",
        SHARING,
        "        self._split.append((hub.principal, hub.server))\n",
        "",
        f"{QUESTIONS}::test_who_comes_after_a_split_has_its_own_until_the_entry_changes",
    ),
    mutant(
        "a server believes the roots of one session of all",
        LEASE,
        "            if not self.hub.suits(self):\n",
        "            if False:\n",
        f"{QUESTIONS}::test_who_comes_with_other_roots_than_those_before_gets_another_connection",
    ),
    mutant(
        "a shared server is told the roots of the first session",
        HUB,
        "        return found[0] if all(each == found[0] for each in found) else None\n",
        "        return found[0]\n",
        f"{QUESTIONS}::test_roots_that_differ_are_told_to_nobody_and_split_the_server",
    ),
    mutant(
        "logs of a shared server are shown to all",
        AUDIENCE,
        "            listeners = self._hub.here if self._hub.server.share_logs else ()\n",
        "            listeners = self._hub.here\n",
        f"{NOTICES}::test_logs_that_may_be_of_anybody",
    ),
    mutant(
        "what a shared server tells in the answer to a call is told to all",
        WIRE,
        "            return [client.lease]\n        return self.hub.here",
        "            return self.hub.here\n        return self.hub.here",
        f"{NOTICES}::test_logs_in_the_answer_to_a_call_are_of_its_session",
    ),
    mutant(
        "an update of a resource is told to who does not follow it",
        WIRE,
        "            return [each for each in self.hub.here if _follows(each, uri)]\n",
        "            return self.hub.here\n",
        f"{NOTICES}::test_an_update_is_told_to_who_follows_that",
    ),
    mutant(
        "subscriptions of sessions are not counted",
        WIRE,
        "            if uri in self.hub.backend.preferences.subscribed():\n",
        "            if False:\n",
        f"{NOTICES}::test_subscriptions_are_counted",
    ),
    mutant(
        "the end of the last who follows a resource leaves it followed",
        WIRE,
        "            await self._follow_no_more()\n",
        "            pass\n",
        f"{NOTICES}::test_the_end_of_the_last_who_follows_unsubscribes",
    ),
    mutant(
        "the level of logs is what the last one has asked for",
        WIRE,
        '            level = loudest([params.get("level"), *self.hub.levels(but=client.lease)])\n',
        '            level = params.get("level")\n',
        f"{NOTICES}::test_the_most_verbose_level_wins_and_each_hears_its_own",
    ),
    mutant(
        "a session hears logs of a level that another one wants",
        AUDIENCE,
        '            if line.source != "protocol" or lease.wants(line.level):\n',
        "            if True:\n",
        f"{NOTICES}::test_the_most_verbose_level_wins_and_each_hears_its_own",
    ),
    mutant(
        "a session is told what others have lost, too",
        AUDIENCE,
        "                    invalidated_tasks=lost.tasks,\n",
        "                    invalidated_tasks=sum(e.lost_with.tasks for e in self._hub.leases),\n",
        f"{NOTICES}::test_a_loss_is_told_to_each_with_what_it_alone_lost",
    ),
    mutant(
        "a split server that is lost is started again for nobody",
        HUB,
        "        return self.is_split and self.backend.client is None\n",
        "        return False\n",
        f"{NOTICES}::test_a_split_server_is_not_started_again_for_what_was_under_way",
    ),
    mutant(
        "a place at a shared server is lost with who gave up",
        "backend/sharing/places.py",
        "            if mine.is_set():  # in this very tick: somebody else has use for it\n"
        "                self._free()\n"
        "            else:\n",
        "            if not mine.is_set():\n",
        f"{PLACES}::test_no_place_is_lost_whoever_gives_up_when",
    ),
    mutant(
        "a burst of one session delays all others",
        "backend/sharing/places.py",
        "            self._waiting[whose] = queue  # behind all others\n",
        "            self._waiting[whose] = queue\n"
        "            self._waiting.move_to_end(whose, last=False)\n",
        f"{PLACES}::test_a_burst_of_one_delays_another_by_one",
    ),
    mutant(
        "what a shared server logs of nobody is lost to who runs the daemon, too",
        AUDIENCE,
        "        if not listeners:\n            self._hub.owner.unshown(self.principal, line)\n",
        "        if not listeners:\n",
        f"{NOTICES}::test_logs_that_may_be_of_anybody",
    ),
    mutant(
        "what a shared server logs of nobody is told to other principals",
        "session/servers/unshown.py",
        "        return [self._of[principal]] if principal in self._of else []\n",
        "        return list(self._of.values())\n",
        f"{NOTICES}::test_logs_that_may_be_of_anybody",
    ),
    mutant(
        "who shares a server later does not see in its timeline that it is connected",
        RECORDS,
        "                for each in noted:\n                    self._keep(fact.session, each)\n",
        "                pass\n",
        f"{NOTED}::test_who_comes_later_sees_that_it_is_there_and_nothing_of_before",
    ),
    mutant(
        "what becomes of a shared connection is kept with the first session alone",
        RECORDS,
        "        for session in shared.sessions:\n",
        "        for session in list(shared.sessions)[:1]:\n",
        f"{NOTED}::test_what_becomes_of_the_connection_is_in_the_timeline_of_each_who_has_it",
    ),
    mutant(
        "who has given a shared server back is told in its timeline what becomes of it",
        LEASE,
        "        self._left = reason\n        self._note_over()\n",
        "        self._left = reason\n",
        f"{NOTED}::test_who_gives_it_back_hears_no_more_of_it",
    ),
    mutant(
        "who has a connection of its own after a split has two in its timeline",
        LEASE,
        "        self._changed.set()\n        self._note_over()\n",
        "        self._changed.set()\n",
        f"{NOTED}::test_after_a_split_each_has_its_own",
    ),
    mutant(
        "each look tells again what sharing would save",
        "web/costs/savings.py",
        "len(each.pids) >= 2 * self._told.get(key, 1)",
        "len(each.pids) >= 2",
        "web/costs/test_savings.py::test_it_is_told_when_there_are_two_and_as_they_double",
    ),
)

"""Bugs of the record of facts, and of what is shown of it."""

from __future__ import annotations

from . import mutant

_REPLAY = "model/timeline/test_replay.py"
_RECORDS = "model/timeline/test_records.py"
_WINDOW = "model/timeline/test_window.py"
_NOTED = "session/test_noting.py"
_PAGE = "web/page/timeline/test_session_page.py"

TIMELINES = (
    mutant(
        "a call is said to wait for its server while a question of it is open",
        "model/timeline/replay.py",
        '            return "question" if call.questions else "server"\n',
        '            return "server"\n',
        _REPLAY,
    ),
    mutant(
        "the first of its questions that is closed lets a call go on",
        "model/timeline/replay.py",
        "                call.questions.discard(fact.question)\n",
        "                call.questions.clear()\n",
        _REPLAY,
    ),
    mutant(
        "a call that was not run is said to be with its server",
        "session/calls/calls.py",
        "        self.journal.note(facts.CallReturned, self.session_id, call.id)\n",
        "        pass\n",
        _NOTED,
    ),
    mutant(
        "only the first call that may wait for a question is named",
        "session/calls/asked.py",
        "        call.questions.append(question)\n        calls.journal",
        "        call.questions.append(question)\n"
        "    for call in concerned[:1]:\n        calls.journal",
        _NOTED,
    ),
    mutant(
        "nothing tells that a client is not asked any more",
        "session/questions/relay.py",
        "            self.journal.note(QuestionLeft, self.session_id, one.question.id)\n",
        "",
        "session/questions/test_relay.py::test_with_whom_a_question_is_is_noted",
    ),
    mutant(
        "nothing tells that the turn of a program has come",
        "backend/link.py",
        "                self.note(facts.ConnectionStarting)\n",
        "                pass\n",
        "backend/children/test_start.py::test_that_a_program_waits_for_its_turn_and_has_it_is_noted",
    ),
    mutant(
        "a return of a server is said to be its first connection",
        "model/timeline/replay.py",
        "                server.was_up = True\n",
        "                pass\n",
        _REPLAY,
    ),
    mutant(
        "what has been waiting for hours is dropped as the oldest",
        "model/timeline/thinning.py",
        "        if left <= most or over == math.inf:\n",
        "        if left <= most:\n",
        _RECORDS,
        also=(
            (
                "model/timeline/thinning.py",
                "    return math.inf if row.ends is None else row.ends\n",
                "    return row.begins if row.ends is None else row.ends\n",
            ),
        ),
    ),
    mutant(
        "a question is dropped before the call that has waited for it",
        "model/timeline/thinning.py",
        "                return max([own, *(_ends(call) for call in calls if call is not None)])\n",
        "                return own\n",
        _RECORDS,
    ),
    mutant(
        "facts of a session that is forgotten make a record of it again",
        "model/timeline/records.py",
        "        record = self._records.get(session)\n"
        "        if record is not None:  # else it has been forgotten\n",
        '        new = Record(session, "", fact.at)\n'
        "        record = self._records.setdefault(session, new)\n"
        "        if record is not None:  # else it has been forgotten\n",
        _RECORDS,
    ),
    mutant(
        "a name as long as its client likes counts as one fact",
        "model/timeline/records.py",
        "            more = heft(fact) - 1\n",
        "            more = 0\n",
        _RECORDS,
    ),
    mutant(
        "what is short is not to be seen in a picture of an hour",
        "model/timeline/window.py",
        "        width = max(self.share(ends) - x, LEAST)\n",
        "        width = self.share(ends) - x\n",
        _WINDOW,
    ),
    mutant(
        "a session is shown to whoever knows its name",
        "web/page/timeline/session.py",
        "        if whose in (None, record.principal) and pages.names.of(record.id) == name:\n",
        "        if pages.names.of(record.id) == name:\n",
        _PAGE,
    ),
    mutant(
        "what still is under way is not shown because it began long ago",
        "web/page/timeline/look.py",
        "    beside = [*links[-MAX_BESIDE:], *older[-MAX_BESIDE:]]\n",
        "    beside = [*links[-MAX_BESIDE:]]\n",
        _PAGE,
    ),
)

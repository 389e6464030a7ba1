"""Bugs by which one makes everybody wait."""

from __future__ import annotations

from . import mutant

SLOW = (
    mutant(
        "a word of a command line is looked at from each of its characters",
        "model/text/redact.py",
        r"(?<![a-z0-9+.-])([0-9+.-]*+)([a-z][a-z0-9+.-]*+://",
        r"([0-9+.-]*?)([a-z][a-z0-9+.-]*://",
        "model/text/test_redact.py::test_long_words_take_no_longer_than_they_are",
    ),
    mutant(
        "each name that a pattern is searched in has an effort of its own",
        "tools/common/search.py",
        "return [self._is_in(name[:NAME], end) for name in names]",
        "return [self._is_in(name[:NAME], time.thread_time() + EFFORT) for name in names]",
        "tools/common/test_search.py::test_all_names_share_one_effort",
    ),
    mutant(
        "a pattern is searched where everybody waits for it",
        "tools/common/search.py",
        "return await in_thread(partial(self._search, names))",
        "return self._search(names)",
        "tools/common/test_search.py",
    ),
    mutant(
        "a form is looked at whatever it takes",
        "model/forms.py",
        "        if self._left < 0:\n",
        "        if self._left < -(10**9):\n",
        "model/test_forms.py::test_no_form_is_looked_at_for_long",
    ),
    mutant(
        "each unknown argument is told",
        "model/json/lenient.py",
        "itertools.islice(strangers, NAMED - len(self.strangers))",
        "strangers",
        "model/json/test_lenient.py::test_strangers_are_counted_where_there_are_too_many",
    ),
    mutant(
        "a list is read before it is counted",
        "model/json/strict.py",
        "found = tuple(itertools.islice(_excess(value[key], a.metadata), MISTAKES))",
        "found: tuple[_Mistake, ...] = ()",
        "model/json/test_strict.py::test_what_is_more_than_anybody_means_is_refused_unseen",
    ),
    mutant(
        "every cookie of a server is kept",
        "backend/http/cookies.py",
        "if len(known) < MAX_COOKIES or",
        "if known is not None or",
        "backend/http/test_cookies.py::test_no_more_than_some_are_kept_and_the_first_can_still_be_replaced",
    ),
    mutant(
        "garbage is looked for as often however many sessions live",
        "waits/garbage.py",
        "if self._ended * SHARE >= self._living:",
        "if self._ended:",
        "waits/test_garbage.py::test_a_look_comes_for_a_share_of_those_that_live",
    ),
    mutant(
        "garbage is looked for before what has ended is gone",
        "waits/garbage.py",
        "await trio.sleep(UNWINDS)",
        "await trio.lowlevel.checkpoint()",
        "waits/test_garbage.py",
    ),
    mutant(
        "what a few sessions were that have ended is kept until there are many",
        "waits/garbage.py",
        "trio.move_on_after(PATIENCE)",
        "trio.move_on_after(10**9)",
        "waits/test_garbage.py::test_a_few_of_few_are_looked_for_after_a_while",
    ),
    mutant(
        "what sharing would save is looked at for ever",
        "web/costs/savings.py",
        "await self._changed.wait()",
        "await trio.lowlevel.checkpoint()",
        "web/costs/test_savings.py::test_nobody_looks_while_nothing_starts_or_ends",
    ),
)

"""Bugs of what finds tools, and of what it says of them."""

from __future__ import annotations

from . import mutant

_INDEX = "session/servers/test_index.py::"
_SEARCH = "tools/test_search.py::"
_LISTS = "tools/common/test_listing.py::"
_BOUND = f"{_LISTS}test_pages_have_each_entry_once_and_none_is_longer_than_the_bound"
_BESIDE = (
    "tools/common/test_response.py::"
    "test_what_an_answer_says_itself_leaves_less_for_what_has_happened"
)

FINDING = (
    mutant(
        "a page begins where one of another list has ended",
        "tools/common/listing.py",
        "        if found[3] != _digest(asked):\n",
        "        if not found[3]:\n",
        f"{_LISTS}test_a_cursor_is_of_one_list_and_of_what_is_there",
    ),
    mutant(
        "what has ended between two pages takes others with it",
        "tools/common/listing.py",
        "        left = [group for group in in_order if group.name >= found]\n",
        "        left = [group for group in in_order if group.name > found]\n",
        f"{_LISTS}test_what_ends_between_two_pages_takes_none_of_the_others_with_it",
    ),
    mutant(
        "the log forgets what had no room on a page",
        "session/buffers.py",
        "            stay = set(map(id, rest))\n",
        "            stay = set[int]()\n",
        "session/test_buffers.py::test_logs_for_which_there_is_no_room_stay_for_the_next_page",
    ),
    mutant(
        "a list is as long as what is listed",
        "tools/common/listing.py",
        "                if size > room and (found or written):\n",
        "                if size > 2 * room and (found or written):\n",
        _BOUND,
    ),
    mutant(
        "a page leaves out the entry for which the one before had no room",
        "tools/common/listing.py",
        "following = Cursor(group.name, at, start.mark)\n",
        "following = Cursor(group.name, at + 1, start.mark)\n",
        _BOUND,
    ),
    mutant(
        "a page begins with the last entry of the one before",
        "tools/common/listing.py",
        "                if at < first:\n",
        "                if at < first - 1:\n",
        _BOUND,
    ),
    mutant(
        "what has happened has as much room as if the answer said nothing else",
        "tools/common/response.py",
        "room = max(LEAST_BESIDE, MAX_DELIVERY_BYTES - size)\n",
        "room = MAX_DELIVERY_BYTES\n",
        _BESIDE,
    ),
    mutant(
        "questions have as much room as if the answer said nothing else",
        "tools/common/response.py",
        "pending(session, delivery, spent) if",
        "pending(session, delivery) if",
        "tools/common/test_response.py::test_and_for_what_is_asked",
    ),
    mutant(
        "what is said beside a list makes its pages too long",
        "tools/common/listing.py",
        "    return max(most - size_of_text(dumps(said)) - FRAME, most // 2)\n",
        "    return most\n",
        _BOUND,
    ),
    mutant(
        "an index is not brought up when a list has changed",
        "session/servers/index.py",
        "        if shelf.said is said:\n            return\n",
        "        if shelf.numbers:\n            return\n",
        f"{_INDEX}test_only_what_has_changed_is_made_anew",
    ),
    mutant(
        "an entry that has changed is found by its old words too",
        "model/search/index.py",
        "        for term in entry.terms:\n            _take(self.postings, term, number)\n",
        "",
        f"{_INDEX}test_only_what_has_changed_is_made_anew",
    ),
    mutant(
        "an index is left half changed by who was interrupted",
        "session/servers/index.py",
        "        shelf.said = None\n        names = yield from _names(said)\n",
        "        shelf.said = said\n        names = yield from _names(said)\n",
        f"{_INDEX}test_a_change_that_was_interrupted_is_made_by_the_next",
    ),
    mutant(
        "a query that is none stops the others",
        "tools/search.py",
        "            self.failed[query] = error.message\n            return Found([], {})\n",
        "            raise error\n",
        f"{_SEARCH}test_patterns_are_searched_for_and_stop_no_other",
    ),
    mutant(
        "an allow-list is not asked for what can be found",
        "backend/catalogue/catalog.py",
        'if self.denied_tools or (name == "tools" and self.hides_something):\n',
        'if self.denied_tools or (name == "prompts" and self.hides_something):\n',
        f"{_SEARCH}test_what_is_not_allowed_is_not_found",
    ),
    mutant(
        "an answer has more than there is room for",
        "model/search/answer.py",
        "        if self._size + size > self.room:\n            return False\n",
        "",
        "model/search/test_answer.py::test_names_have_room_before_schemas",
        also=(
            (
                "model/search/answer.py",
                "        if self._size <= self.room:\n            return False\n",
                "        if self.room:\n            return False\n",
            ),
        ),
    ),
    mutant(
        "a server that was removed is found",
        "session/servers/index.py",
        "            del self._shelves[place]\n",
        "            self._shelves.pop(place).said = []\n            break\n",
        f"{_INDEX}test_what_is_removed_is_found_no_more",
    ),
    mutant(
        "the view core cannot read what is too long",
        "tools/views.py",
        "        *_WAITING,\n        reading.read_result,\n",
        "        *_WAITING,\n",
        "tools/test_views.py::test_each_view_has_what_its_loop_needs_and_no_more",
    ),
)

"""Bugs of what is kept of long answers, and shown of it."""

from __future__ import annotations

from . import mutant

RESULTS = (
    mutant(
        "what a server asks with many words is put to nobody as text",
        "backend/connections/sdk.py",
        '        is_whole = outcome.get("resultType", "complete") == "complete"\n',
        "        is_whole = True\n",
        "backend/connections/test_client.py::"
        "test_long_texts_are_left_in_the_last_of_the_rounds_alone",
    ),
    mutant(
        "a preview of an image says that its lines can be read",
        "tools/results/preview.py",
        '    if not kept.is_text:\n        return "read_result with this id, and bytes"\n',
        "",
        "tools/test_results.py::test_what_it_looks_like_is_said",
    ),
    mutant(
        "what is shown whole is shown with long texts that nobody can read",
        "tools/results/shown.py",
        "    return await whole(result)\n",
        "    return result\n",
        "tools/test_results.py::test_it_is_off_where_that_is_said",
    ),
    mutant(
        "a long answer is in memory as bytes and as a string",
        "tools/execution.py",
        "                    leaves_long=True,\n",
        "",
        "tools/test_memory.py",
    ),
    mutant(
        "a long name of a member is left in its message",
        "model/json/intake.py",
        "            if found is None or _NAMES.match(text, last + 1):\n",
        "            if found is None:\n",
        "model/json/test_intake.py::test_long_strings_can_be_left_where_they_are",
    ),
    mutant(
        "what is left of a question is put to nobody who can read it",
        "backend/connections/messages.py",
        "        return (yield from unfolded(value))\n",
        "        return value\n",
        "backend/connections/test_messages.py",
    ),
    mutant(
        "a preview of an error is none",
        "tools/results/preview.py",
        '        shorter["content"] = [*content, *about_structured]\n',
        '        shorter["content"] = [*content, *about_structured]\n'
        '        shorter.pop("isError", None)\n',
        "tools/test_results.py::test_a_long_answer_is_shown_as_a_preview",
    ),
    mutant(
        "a file outlives its session",
        "session/results.py",
        "await on_disk(self.folder.remove)\n",
        "await trio.lowlevel.checkpoint()\n",
        "session/test_results.py::test_nothing_is_left_of_a_session",
    ),
    mutant(
        "what a killed daemon has left stays",
        "session/results.py",
        "        await on_disk(folders.clear)\n",
        "        pass\n",
        "tools/test_results.py::test_a_file_has_it_as_long_as_the_session_lives",
    ),
    mutant(
        "the files of a daemon that runs are taken for left",
        "session/kept.py",
        "        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
        "",
        "session/test_results.py::test_what_another_daemon_has_is_its_own",
    ),
    mutant(
        "an evicted id is said to be unknown",
        "session/results.py",
        "        self._gone[result_id] = why\n",
        "",
        "tools/test_results.py::test_what_is_evicted_or_expired_says_so",
    ),
    mutant(
        "a part of a result is above the bound",
        "tools/results/reading.py",
        "    return max(most - ABOUT, most // 2)\n",
        "    return 2 * most\n",
        "tools/test_results.py::test_it_is_read_in_parts",
    ),
    mutant(
        "a part ends within a character",
        "tools/results/parts.py",
        "data[: len(data) - back] if back < whole < len(data) + back else data\n",
        "data\n",
        "tools/test_results.py::test_it_is_read_in_parts",
    ),
    mutant(
        "who gives up while it is written leaves a file",
        "session/results.py",
        "            draft.give_up()\n",
        "            pass\n",
        "session/test_results.py::test_who_gives_up_leaves_nothing",
    ),
)

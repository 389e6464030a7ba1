"""Bugs of what is kept of long answers, and shown of it."""

from __future__ import annotations

from . import mutant

RESULTS = (
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

"""Bugs of what monitors read, and of traces."""

from __future__ import annotations

from . import mutant

WATCHING = (
    mutant(
        "names of servers are as many series as clients make up",
        "web/metrics/labels.py",
        "            if len(self._servers) >= MAX_METRIC_SERVERS:\n                return OTHER\n",
        "",
        "web/metrics/test_labels.py::test_a_flood_of_servers_leaves_the_configured_ones_their_names",
    ),
    mutant(
        "one server has all places for tools",
        "web/metrics/labels.py",
        "MAX_METRIC_TOOLS // SHARE\n",
        "MAX_METRIC_TOOLS\n",
        "web/metrics/test_labels.py::test_a_server_with_many_tools_leaves_places_to_others",
    ),
    mutant(
        "a tool that there is not is a series",
        "web/metrics/counted.py",
        "fact.code != NotFound.code",
        "True",
        "web/metrics/test_counted.py::test_names_that_a_client_makes_up_are_no_series",
    ),
    mutant(
        "half a surrogate pair is in a label",
        "web/metrics/labels.py",
        """each if each.isprintable() else "\\ufffd" for""",
        "each for",
        "web/metrics/test_labels.py::test_a_name_is_one_short_line_of_text",
    ),
    mutant(
        "events count when they are on their way",
        "web/metrics/counted.py",
        "            self._delivered[fact.delivery] = fact.events\n",
        "            told.inc(fact.events)\n",
        "web/metrics/test_counted.py::test_events_count_once_they_are_handed_over",
    ),
    mutant(
        "what we have ended ourselves is a loss",
        "web/metrics/counted.py",
        "None if f.is_ours else by_server(lost)(f)",
        "by_server(lost)(f)",
        "web/metrics/test_counted.py::test_only_what_was_lost_by_itself_is_a_loss",
    ),
    mutant(
        "each exit code is a series",
        "web/metrics/counted.py",
        """("error" if fact.code else "exit")""",
        "str(fact.code)",
        "web/metrics/test_counted.py::test_how_programs_end_is_one_of_few_words",
    ),
    mutant(
        "every token may read what is counted of everybody",
        "config/settings.py",
        "isinstance(said, Token) and said.metrics",
        "said is not None",
        "web/metrics/test_scrape.py::test_a_daemon_answers_its_operator_and_its_monitor",
    ),
    mutant(
        "all sessions are looked at in one step",
        "web/metrics/standing.py",
        "        found.add(session)\n        yield\n",
        "        found.add(session)\n    yield\n",
        "web/metrics/test_scrape.py::test_others_run_between_two_sessions_that_are_looked_at",
    ),
)

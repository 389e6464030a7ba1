"""Bugs of the page for people."""

from __future__ import annotations

from . import mutant

ACCESS = "web/page/test_access.py::"
ANSWERS = "web/page/test_answering.py::"
FORMS = "web/page/test_forms.py::"
SERVERS = "web/page/test_servers.py::"
ENTRIES = "config/test_entries.py::"

PAGE = (
    # Who may
    mutant(
        "a link logs in whoever has it, as often as he likes",
        "web/logins.py",
        "self._links.pop(_digest(key), (None, 0.0))",
        "self._links.get(_digest(key), (None, 0.0))",
        ACCESS + "test_a_link_logs_in_one_browser_once",
    ),
    mutant(
        "a link on a page of somebody else logs in whoever looks at it",
        "web/visitors.py",
        'said == (b"none", b"navigate") and is_seen',
        'said != (b"none", b"cors") and is_seen',
        ACCESS + "test_a_link_that_somebody_else_leads_to_takes_a_click",
    ),
    mutant(
        "who has logged in stays so when his token is none any more",
        "web/logins.py",
        "        if not is_known or now",
        "        if now",
        ACCESS + "test_a_login_ends_with_its_token",
    ),
    mutant(
        "a login that is used never ends",
        "web/logins.py",
        "now >= min(login.used + IDLE, login.began + LASTS)",
        "now >= login.used + IDLE",
        ACCESS + "test_links_and_logins_are_bounded_and_end",
    ),
    mutant(
        "a cookie opens the endpoint",
        "web/app.py",
        "principal = self.security.principal(scope)\n            await endpoint",
        "principal = identify(scope, self.security, self.logins, mount).visitor.principal\n"
        "            await endpoint",
        ACCESS + "test_a_cookie_opens_no_mcp_and_no_other_daemon",
    ),
    mutant(
        "a page of another port uses the cookie",
        "web/visitors.py",
        'site in (b"same-origin", b"none")',
        'site in (b"same-origin", b"same-site", b"none")',
        ACCESS + "test_a_page_of_another_port_cannot_use_the_cookie",
    ),
    mutant(
        "a form of another page is taken for one of ours",
        "web/visitors.py",
        "return is_own_origin(scope) and hmac",
        "return hmac",
        ACCESS + "test_a_change_is_refused_that_is_not_the_visitors_own_wish",
    ),
    mutant(
        "a form without a CSRF token is taken",
        "web/visitors.py",
        "return is_own_origin(scope) and hmac.compare_digest(self.csrf.encode(), csrf.encode())",
        "return is_own_origin(scope)",
        ACCESS + "test_a_change_is_refused_that_is_not_the_visitors_own_wish",
    ),
    mutant(
        "a form changes something where no token is needed, whoever has made it",
        "web/visitors.py",
        "given.keys().isdisjoint(_OF_BROWSERS)",
        "True",
        ACCESS + "test_a_change_is_refused_that_is_not_the_visitors_own_wish",
    ),
    mutant(
        "a login leads to somebody else's page",
        "web/page/access.py",
        'and not path.startswith(("//", "/\\\\"))',
        "",
        ACCESS + "test_a_login_leads_to_a_page_of_ours",
    ),
    mutant(
        "somebody sees the questions of another principal",
        "web/page/common/names.py",
        "self.manager.sessions(whose)",
        "self.manager.sessions()",
        ANSWERS + "test_a_principal_sees_and_answers_what_is_its_own",
    ),
    mutant(
        "what servers write is a part of the page",
        "web/page/common/rendering.py",
        "autoescape=True",
        "autoescape=False",
        ANSWERS + "test_whatever_servers_write_is_shown_as_they_wrote_it",
    ),
    mutant(
        "what a server has written turns the direction of the page",
        "web/page/common/rendering.py",
        "            finalize=_seen,\n",
        "",
        SERVERS + "test_what_a_server_writes_is_shown_oldest_first",
    ),
    mutant(
        "an address that is no page's can be clicked",
        "web/page/answering.py",
        'parts.scheme not in ("http", "https") or not host or not _PLAIN.fullmatch(parts.netloc)',
        "not parts.scheme",
        ANSWERS + "test_what_is_no_page_is_no_link",
    ),
    mutant(
        "an address leads elsewhere than it says",
        "web/page/answering.py",
        " or not _PLAIN.fullmatch(parts.netloc):",
        ":",
        ANSWERS + "test_an_address_that_browsers_may_read_in_another_way_is_no_link",
    ),
    mutant(
        "a tool whose name is a path has another one called",
        "web/page/common/rendering.py",
        'return quote(name, safe="")',
        "return quote(name)",
        SERVERS + "test_a_tool_with_the_name_of_a_path_is_called_all_the_same",
    ),
    mutant(
        "arguments are shown although they are switched off",
        "web/page/tasks.py",
        "if shows is not None and not pages",
        "if shows == 'result' and not pages",
        SERVERS + "test_arguments_and_results_can_be_switched_off",
    ),
    # Answers
    mutant(
        "what does not fit a form goes to the server",
        "web/page/answering.py",
        "state, result = await judged(asked, said)",
        "state, result = await judged(asked, said, as_it_is=True)",
        ANSWERS + "test_what_does_not_fit_is_shown_again_with_what_is_wrong",
    ),
    mutant(
        "nobody is told that the operator has answered",
        "session/questions/questions.py",
        "        if by is not None:\n",
        "        if False:\n",
        ANSWERS + "test_a_form_is_answered_as_by_the_tool",
    ),
    mutant(
        "a field that was emptied has its default again",
        "web/page/filled.py",
        "if said or field.is_needed or field.value:",
        "if said or field.is_needed:",
        FORMS + "test_what_was_filled_in_is_read",
    ),
    mutant(
        "true is taken for one",
        "web/page/forms.py",
        "return json.dumps(value, sort_keys=True)",
        "return json.dumps(int(value) if value is True else value, sort_keys=True)",
        FORMS + "test_choices_have_their_titles_and_stand_for_their_values",
    ),
    # Servers
    mutant(
        "a server that was disabled comes back when the configuration is read",
        "session/servers/registry.py",
        "if name in same}\n",
        "if name not in same}\n",
        SERVERS + "test_a_server_is_disabled_in_all_sessions_and_enabled_again",
    ),
    mutant(
        "a header that is kept goes wherever the edit says",
        "config/entries.py",
        "return urlsplit(before)[:2] == urlsplit(after)[:2]",
        "return bool(urlsplit(after)[:2])",
        ENTRIES + "test_a_header_that_was_kept_for_one_host_goes_to_no_other",
    ),
    mutant(
        "a hidden word is kept wherever it stands",
        "config/entries.py",
        'asked[words[i - 1] if i else "", word].append(i)',
        'asked[word and "--token", word].append(i)',
        ENTRIES + "test_what_is_hidden_somewhere_else_is_not_guessed",
    ),
    mutant(
        "a command is edited whatever clients may have started",
        "session/servers/registry.py",
        "        if starts_otherwise(server, before):\n",
        "        if not before:\n",
        "web/page/test_editing.py::test_a_program_is_not_replaced_where_clients_may_start_none",
    ),
    mutant(
        "who adds a server on the page chooses what it inherits of our environment",
        "web/page/servers/entering.py",
        'OF_OPERATORS = ("inherit_env", "roots")',
        'OF_OPERATORS = ("roots",)',
        "web/page/test_editing.py::test_how_far_a_server_may_go_is_said_in_the_configuration_only",
    ),
    mutant(
        "anybody restores what the operator has removed",
        "session/servers/registry.py",
        "        self._check_owner(principal, name)\n        now, written",
        "        now, written",
        "session/servers/test_registry.py::test_what_is_configured_is_the_operators_where_that_is_said",
    ),
    mutant(
        "anybody takes an edit of the operator back",
        "session/servers/registry.py",
        "        elif name not in self._removed:\n",
        "        elif not name:\n",
        "session/servers/test_registry.py::test_an_edit_is_taken_back_by_who_runs_the_daemon_alone",
    ),
    mutant(
        "what is written beside a variable is shown",
        "config/seen.py",
        "return said if _HARMLESS.fullmatch(said) else written",
        "return said",
        ENTRIES + "test_what_is_written_beside_a_variable_is_as_hidden_as_without_one",
    ),
    mutant(
        "what a variable stands for is shown in the path of a URL",
        "config/seen.py",
        "    return seen(url, redacted, _plain(written)",
        "    return redacted or seen(url, redacted, _plain(written)",
        ENTRIES + "test_of_a_url_with_variables_no_more_is_shown_than_of_another",
    ),
    mutant(
        "a secret is shown in the path of a URL",
        "model/text/redact.py",
        "HIDDEN if _RANDOM.fullmatch(each) else each",
        "HIDDEN if _RANDOM.fullmatch(each[:1]) else each",
        "model/text/test_redact.py::test_a_part_of_a_path_that_nobody_has_thought_up_is_hidden",
    ),
    mutant(
        "a bug in what is made of new settings ends the daemon",
        "daemon.py",
        "expected=(ConfigError, BadToken), fields",
        "expected=(Exception,), fields",
        "test_daemon.py::test_a_bug_in_what_is_made_of_settings_ends_no_daemon",
    ),
    mutant(
        "the text of an error is shown where payloads are not",
        "web/page/tasks.py",
        "error = task.error if is_told else None",
        "error = task.error",
        SERVERS + "test_what_a_server_says_of_its_calls_is_switched_off_as_well",
    ),
    mutant(
        "lines of one moment are shown backwards",
        "web/logged.py",
        "return each[2].timestamp, each[1]",
        "return each[2].timestamp, 0",
        SERVERS + "test_what_a_server_writes_is_shown_oldest_first",
    ),
)

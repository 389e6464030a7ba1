"""Bugs of what is written into settings of others, and of what looks after a machine."""

from __future__ import annotations

from . import mutant

_CONNECT = "commands/home/test_connect.py::"
_IMPORT = "commands/home/test_import.py::"
_DOCTOR = "commands/health/test_doctor.py::"
_EVERY_BYTE = f"{_CONNECT}test_connect_then_disconnect_gives_back_every_byte"

HOME = (
    mutant(
        "a backup is not given back, our entry is taken out instead",
        "commands/home/disconnect.py",
        "        if backup is not None and digest(document.content) == backup.written:\n",
        "        if backup is None and digest(document.content) == '':\n",
        _EVERY_BYTE,
    ),
    mutant(
        "a file that was changed since is overwritten with what it was",
        "commands/home/disconnect.py",
        "        if backup is not None and digest(document.content) == backup.written:\n",
        "        if backup is not None:\n",
        f"{_CONNECT}test_what_has_changed_since_loses_only_our_entry",
    ),
    mutant(
        "a link is replaced by a file",
        "commands/home/documents.py",
        "            _replace(self.target, content, self._check_same, private=private)\n",
        "            _replace(self.path, content, self._check_same, private=private)\n",
        _EVERY_BYTE,
    ),
    mutant(
        "a file loses its mode",
        "commands/home/documents.py",
        "            mode = target.stat().st_mode if target.exists() else NEW_MODE\n",
        "            mode = 0o644\n",
        _EVERY_BYTE,
    ),
    mutant(
        "what is read-only is written by who may do anything",
        "commands/home/documents.py",
        "            if not self.target.stat().st_mode & stat.S_IWUSR:\n",
        "            if not os.access(self.target, os.R_OK):\n",
        f"{_CONNECT}test_what_cannot_be_written_is_said_and_left_as_it_is",
    ),
    mutant(
        "what somebody else has written meanwhile is lost",
        "commands/home/documents.py",
        "        check()\n        Path(name).replace(target)\n",
        "        Path(name).replace(target)\n",
        f"{_CONNECT}test_a_file_that_changes_under_our_hands_is_not_overwritten",
    ),
    mutant(
        "a change is written without a look at what it has become",
        "commands/home/documents.py",
        "            is_right = read_text(after, self.target) in wanted\n",
        "            is_right = True\n",
        "commands/home/test_documents.py::test_an_edit_that_says_something_else_is_not_written",
    ),
    mutant(
        "a backup that was damaged is given back",
        "commands/home/backups.py",
        "        if digest(content) != backup.was:\n",
        "        if not content:\n",
        f"{_CONNECT}test_a_backup_that_is_damaged_is_not_put_back",
    ),
    mutant(
        "the second connect takes what the first has made for what it was",
        "commands/home/connect.py",
        '    if old is not None and old.written == digest(document.content or b""):\n',
        "    if old is not None and old.was is None:\n",
        f"{_CONNECT}test_an_entry_of_ours_that_is_out_of_date_is_changed_and_undone_to_the_beginning",
    ),
    mutant(
        "an entry of the owner's own is taken for ours",
        "commands/home/connect.py",
        "        if name != NAME or not is_as_we_left_it:\n",
        "        if name != NAME:\n",
        f"{_CONNECT}test_who_is_connected_by_an_entry_of_his_own_keeps_it",
    ),
    mutant(
        "a conflict is won by who comes last",
        "commands/home/take_over.py",
        "        elif each.name not in taken:\n",
        "        elif each.name not in known:\n",
        f"{_IMPORT}test_who_has_a_name_keeps_it",
    ),
    mutant(
        "what is ours already is overwritten",
        "commands/home/take_over.py",
        "    taken = dict(known)\n",
        "    taken: dict[str, Server] = {}\n",
        f"{_IMPORT}test_who_has_a_name_keeps_it",
    ),
    mutant(
        "a secret stands in the table",
        "commands/home/take_over.py",
        '    target = found.server.target if found.server is not None else ""\n',
        "    target = str(dict(found.values))\n",
        f"{_IMPORT}test_secrets_that_stand_there_are_told_by_name_and_kept_for_the_owner",
    ),
    mutant(
        "everybody can read a file that secrets were written to",
        "commands/home/take_over.py",
        "        kept = write(ours, new, private=bool(secret))\n",
        "        kept = write(ours, new, private=False)\n",
        f"{_IMPORT}test_secrets_that_stand_there_are_told_by_name_and_kept_for_the_owner",
    ),
    mutant(
        "what a program fills in itself is filled in before",
        "commands/home/found.py",
        "    values = _absolute(_own_variables(_with_texts(values)), folder)\n",
        "    values = _absolute(_with_texts(values), folder)\n",
        f"{_IMPORT}test_what_a_program_fills_in_itself_is_left_to_it",
    ),
    mutant(
        "a comment is taken for a member of an object",
        "model/json/edits.py",
        '    here = _object(plain, _TOKEN.search(plain), "the file")\n    unit',
        '    here = _object(text, _TOKEN.search(text), "the file")\n    unit',
        "model/json/test_edits.py",
    ),
    mutant(
        "the unit of somebody else is replaced unasked",
        "commands/service/install.py",
        "        if not _is_ours(before) and not agreed(options, f",
        "        if before is None and not agreed(options, f",
        "commands/service/test_install.py::"
        "test_a_unit_that_somebody_else_wrote_is_not_replaced_unasked",
    ),
    mutant(
        "a token that all can read is well",
        "commands/health/settings.py",
        "    if kept is not None and (mode := stat.S_IMODE(path.stat().st_mode)) & 0o077:\n",
        "    if kept is not None and (mode := stat.S_IMODE(path.stat().st_mode)) & 0o007:\n",
        f"{_DOCTOR}test_a_token_is_for_its_owner",
    ),
    mutant(
        "what the service does not find is not looked for with its PATH",
        "commands/health/daemon.py",
        "        if here is not None and shutil.which(command, path=path) is None:\n",
        "        if here is not None and shutil.which(command) is None:\n",
        f"{_DOCTOR}test_a_service_finds_what_the_shell_finds_or_it_is_told",
    ),
)

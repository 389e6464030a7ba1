"""What became of everything in a session, as a picture and as a table: `sessions` which there are,
`session` one of them, `look` what of it somebody wants to see, `drawing` where that stands.
"""

from __future__ import annotations

from ....journal import Reader
from ....model.timeline.records import Records
from ..common.pages import Pages
from . import session, sessions


def add_to(pages: Pages) -> None:
    limits = pages.manager.config.limits
    records = Records(limits.facts, limits.facts_in_all)
    for read, kinds in records.readers():
        reader = Reader("timeline", read, kinds, lambda: records.dropped)
        pages.manager.journal.add(reader)
    sessions.add_to(pages, records)
    session.add_to(pages, records)

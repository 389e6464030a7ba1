"""The page for the person who runs a daemon: rendered here, live by a stream, all of it ours.

`common` is what all pages are made of: `common/pages.py` says how a view or a change is added. A
view is a module (or package, if it is large) with `add_to(pages)`; `the_page` below names all of
these. Here are `access` logging in and out · `now` what is under way, `waiting` what each call
waits for, and `memory` of programs · `answering` questions, by `forms` made of schemas, and
what is `filled` in · `servers` and their tools and logs · `tasks` calls, their arguments and
results · `timeline` what became of everything in a session.

Templates are in `templates/`, and extend ``base.html``: blocks ``title``, ``main``, and ``styles``
and ``scripts`` for files of `static/`, by ``asset('name.css')``. What a template gets is the JSON
of its view, and what `Pages.html` adds: ``to('/path')`` for links, ``csrf`` for the hidden field of
each form, ``payloads``. Nothing is inline, as the policy has it: no ``style`` and no ``on…``
attributes; what has to be drawn is SVG, whose x and width are no styles.

A page is live by itself: when something has changed it is asked for anew, and what differs in
``main`` is exchanged. Give an ``id`` to whatever comes, goes or moves; ``data-kept`` leaves the
inside of an element to a script; the event ``page:changed`` on the document tells one of the
exchange. A form that somebody is filling in stays as it is. ``<time data-since="12.3">`` counts
on. A body block without ``data-live`` is a page that stands still.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...session.manager import SessionManager
from . import access, answering, now, servers, tasks, timeline
from .common.pages import Pages


def the_page(manager: SessionManager, about: Callable[[], Mapping[str, Any]]) -> Pages:
    pages = Pages(manager, about)
    for view in (access, now, timeline, answering, servers, tasks):
        view.add_to(pages)
    return pages

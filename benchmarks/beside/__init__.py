"""What ``peers.py`` sets side by side.

Read ``contenders`` (who, and how each is started), ``installs`` (where peers come from), ``load``
(what each is asked for), ``samples`` (what was measured, and what is made of it). Programs of
their own: ``echo`` (the server behind all of them), ``on_trio``, ``on_uvicorn`` and ``on_sdk``
(floors: the least there is in between), ``plot``.
"""

"""Faces: what a connection sees of its session.

``face`` says what one is, ``ours`` has the views of our own tools, ``native`` the one of those of
servers, and ``one_server`` shows a server as it is, each request of its client by an ``exchange``:
``listening`` to it, and questions that are ``passed`` on in rounds. ``views`` has them by name. A
connection has one face for as long as it lasts.
"""

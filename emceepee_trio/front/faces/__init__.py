"""Faces: what a connection sees of its session.

``face`` says what one is, ``ours`` has the views of our own tools, ``native`` the one of those of
servers, and ``one_server`` shows a server as it is. ``views`` has them by name. A connection has
one face for as long as it lasts.
"""

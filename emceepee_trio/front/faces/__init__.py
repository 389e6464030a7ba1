"""Faces: what a connection sees of its session.

``face`` says what one is, ``ours`` has the views of our own tools, and ``one_server`` shows a
server as it is. A connection has one face for as long as it lasts.
"""

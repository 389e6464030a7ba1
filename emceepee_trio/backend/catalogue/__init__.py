"""What servers have: tools, resources, prompts.

`catalog` asked of a connection, page by page · `knowledge` what one session knows of a server that
it is not connected to · `memory` what the daemon remembers of all, `shelf` on disk.
"""

"""What tools, prompts and resources of many servers are called in one list. Pure.

`names` of tools and prompts · `uris` of resources, there and back, and `places` where those stand
in what a server says · `choice` of the tools for which there is room.
"""

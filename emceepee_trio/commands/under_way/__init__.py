"""What is under way in a running daemon, and has it do something, for people without a browser.

`api` what its page is made of · `asking` a form, in a terminal · `person` a question put to whoever
sits there, `meanwhile` in the middle of a call; `tasks`, `answer`, `reload` are the commands.
"""

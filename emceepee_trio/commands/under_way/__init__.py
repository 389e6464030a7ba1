"""What is under way in a running daemon, for people without a browser.

`api` what its page is made of · `asking` a form, in a terminal; `tasks`, `answer` are the commands.
"""

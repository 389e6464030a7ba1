"""What backends ask of a client, and who answers.

`question` one · `questions` all of a session: each waits in the task that asks · `answers` whether
one fits · `relay` puts them to clients that can answer themselves, beside the tools.
"""

"""The view ``native``: tools, resources and prompts of all servers under names of their own.

`face` answers requests for them · `lists` what is listed · `owners` whose a tool, a prompt or a
resource is · `errors` what a client of the protocol is told in the place of a result.
"""

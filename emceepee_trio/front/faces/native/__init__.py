"""The view ``native``: tools, resources and prompts of all servers under names of their own.

`face` answers calls, and other `requests`, from `lists` of all servers; `owners` knows
whose a tool, a prompt or a resource is, and `errors` what is said in the place of a result · `news`
is what a client hears of changes to what it has read, as `readings` say, or follows; in the modern
era it is `listening` for that.
"""

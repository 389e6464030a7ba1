"""What every request over HTTP meets before anybody who knows MCP, and the pages for people.

`app` who answers what · `security` whether somebody may ask: `authority` of hosts and origins,
`tokens` and the `token_file` they come from · `visitors` who asks for a page, and `logins` of
browsers · `page` all that is for people · `metrics` for monitors · `status`, `logged`, `programs`
and `reloading` what programs ask of a daemon · `costs` of servers · `wire` bodies in, JSON and
event streams out; answers as they are written, also elsewhere.
"""

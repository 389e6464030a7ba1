"""Values, transition tables, ids. No trio, no input or output, no clock: they come in.

`events` what can happen in a session, and `incidents` what is told of it as one · `facts` what is
noted of all that happens · `states` what things can become, and the `diagrams` drawn from that ·
`forms` what a client fills in · `ids`, `delays`, `addresses` · `allowed` and `inherited` which
names are let through · `wire` all of it as the JSON that clients see.

`json` reads and writes what others wrote; `text` is what people are shown; `native` is what things
of many servers are called in one list; `timeline` is what facts come to, replayed; `search` finds
by words; `protocol` is what MCP says.
"""

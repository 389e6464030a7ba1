"""What tools are made of.

`registry` what a tool is · `response` what one answers, with the `deliveries` that ride along ·
`asking` servers, one or all · `listing` and `search` lists in answers, `indexing` what is found in
them by words · `pages` that servers want to have opened first · `following` resources ·
`clients` what programs of clients do with an answer.
"""

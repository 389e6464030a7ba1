"""What monitors read of a daemon: counts of what has happened, and how things stand.

`counted` reads facts · `standing` looks at sessions when somebody asks · `memory` of children, as
the kernel has it · `labels` says which names of peers stand by themselves ·
`families` what a metric is · `scrape` puts all of it
into the format of Prometheus. Everything belongs to one daemon: there is nothing global.
"""

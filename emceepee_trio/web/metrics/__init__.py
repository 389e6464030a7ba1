"""What monitors read of a daemon: counts of what has happened, and how things stand.

`counted` reads facts · `standing` looks at sessions when somebody asks · `families` what a metric
is · `scrape` puts all of it into the format of Prometheus. Which names of peers stand by themselves
say `telemetry/labels`. Everything belongs to one daemon: there is nothing global.
"""

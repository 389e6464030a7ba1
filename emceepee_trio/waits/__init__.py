"""Ways to wait, and walls between those who do. On trio; knows nothing of ours but the model.

`slot` one result · `bell` something has changed · `feed` numbered items and readers who miss none ·
`slices` work that can be long · `matching` patterns, and `disk` files, that may take for ever ·
`patience` deadlines of those who wait · `firewall` what a bug costs · `sweeper` what was kept long
enough, `garbage` what holds itself · `watchdog` who keeps all others waiting.
"""

"""What makes us at home among other programs: their servers become ours, and we one of theirs.

`places` where each client keeps its servers · `documents` such a file, read and changed in place ·
`backups` what it was before · `found` their servers in our words · `entry` what we write into
theirs · `asking` before anything is written · `steps`, one for each file; `take_over`, `connect`,
`disconnect` are the commands.
"""

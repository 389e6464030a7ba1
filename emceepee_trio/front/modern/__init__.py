"""The 2026-07-28 half of the endpoint: every POST is self-contained.

`endpoint` what a request has to be, and the session that it is for · `workspaces` who is seen to
use that · `exchange` one request: its answer, what is said before it, and how both are written.
"""

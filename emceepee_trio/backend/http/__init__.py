"""Servers behind URLs.

`streamable` is the transport of both eras: what each message is sent and answered with. Below it
are `courier`, with all that goes with each request, `channels`, the TCP connections on which one is
sent, and `responses`, which reads what comes back. `old` is the SDK's transport of 2024. Both tell
`transport` what they see of the server.

`posts` one message on its way · `event_stream` an answer that comes in events · `pace` how often a
stream that ends is asked for again · `cookies` of one connection · `auth` what servers are shown of
who asks · `network` where connections may go.
"""

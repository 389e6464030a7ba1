"""Servers behind URLs.

`transport` the SDK's transports, with what they leave open · `posts` one message on its way, read
by `event_stream` where the answer is one · `pace` how often a stream that ends is asked for again ·
`cookies` of one connection · `auth` what they are shown of who asks · `network` where connections
may go.
"""

"""Asking clients what servers ask: each era has its own way to do so.

`backchannel` requests of ours to a client of the handshake era, and the answers to them · `roots`
what it says of its folders · `interrupted` requests of the modern era that are answered with a
question, and how their retries find them; `rounds` one of those, and its `puts`, what its client is
asked.
"""

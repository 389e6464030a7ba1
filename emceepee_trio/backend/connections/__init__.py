"""One negotiated connection to a server, whatever its transport.

`connect` opens one, and `failures` says why it could not · `client` requests out, answers in ·
`callbacks` what the server says of its own accord · `messages` the one way in of what it says, in
`turns` where that is long · `listening` to changes in the modern era · `tasks` that the server runs
as such · `health` whether it still answers · `witness` what those have seen who read and write ·
`traced` what those are told who want to know of it · `sdk` what we use of the SDK's client beyond
what it promises.
"""

"""Long JSON of peers: gone through and parsed in steps, and no more of it than somebody needs.

`reading` is where it comes in, short or long. It is `cutting` it into parts, which are parsed by
themselves and joined by `joining`. A long `text`, and a long `value`, stay in the message as they
came; what has some in it is `partly` read. `outlines` of what is refused say who waits for it.
"""

"""JSON of others: how much of it there may be, what it means, what is wrong with it.

`intake` bounds what peers send before it is parsed, and `long` reads what is long of it ·
`jsonc` reads what people wrote · `strict` makes frozen classes of it, by their `fields`;
`schema` is of the same classes · `lenient` is for arguments that models wrote · `problems` says
what is wrong · `weight` how large a value is · `spelling` writes long ones in steps · `edits` what
others keep in a file · `shape` what a value looks like.
"""

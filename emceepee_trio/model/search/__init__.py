"""Finding what servers have, by words, and saying it briefly. Pure.

`words` terms of texts · `synonyms` of verbs and things · `entries` what of a listed
one is searched · `index` which have a term ·
`ranking` what fits a query best · `signatures` a tool on one line, or as Python · `tokens` about
how many a text has · `answer` as much as there is room for.
"""

"""Words that people use for one another when they say what is to be done.

Each line is what programs in general call one thing or one deed; no line is made for any server.
"""

from __future__ import annotations

from collections.abc import Mapping

from .words import stem

_GROUPS = """
get fetch read retrieve obtain load
list show enumerate
delete remove erase drop destroy
create add make new generate build
write save store put
update edit modify change set
search find lookup query discover look
run execute start launch invoke
stop end kill terminate
send post publish
check verify validate test
convert transform translate
calculate compute evaluate
open read
close end
draw plot
download fetch
upload put
join merge combine concatenate
split divide
copy duplicate clone
rename move
compare diff
image picture photo
dir directory folder
file document
url link website page
price quote cost
repo repository
db database
config configuration settings
message mail
current latest now
news headline article
trend popular rank hot
info information detail
directions route
analyze analysis statistics
address location place
user account person people
error failure problem
issue ticket bug
job task
log history
param parameter argument option
"""


def _synonyms() -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in _GROUPS.split("\n"):
        group = {stem(word) for word in line.split()}
        for each in group:
            found.setdefault(each, set()).update(group - {each})
    return {each: frozenset(others) for each, others in found.items()}


SYNONYMS = _synonyms()
"""By term."""

"""``emceepee reload``: a running daemon reads its configuration again."""

from __future__ import annotations

import argparse

from ..common.options import add_url_option
from ..common.output import complain, say
from .api import Api, NoAnswer, RefusedByDaemon


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_url_option(parser)


def run(options: argparse.Namespace) -> int:
    try:
        say(Api.of(options).post("/reload", {}))
    except NoAnswer as error:
        complain(f"emceepee reload: {error}")
    except RefusedByDaemon as error:
        for line in str(error).split("\n"):
            complain(f"emceepee reload: {line}")
        complain(f"emceepee reload: {error.outcome or 'so nothing has changed'}")
    else:
        return 0
    return 1

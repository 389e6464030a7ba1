"""``emceepee completion``: what a shell needs to complete commands and options.

Each script holds all that there is, so nothing of ours runs when somebody presses Tab.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence

from .common.output import say

Commands = Mapping[str, argparse.ArgumentParser]

HOW = {
    "bash": 'eval "$(emceepee completion bash)"   # in ~/.bashrc',
    "zsh": 'eval "$(emceepee completion zsh)"   # in ~/.zshrc, after compinit',
    "fish": "emceepee completion fish | source   # in ~/.config/fish/config.fish",
}

KNOWN = "known"
"""An attribute of an action: words that it mostly takes."""

GENERAL = {"--help": "show help and exit", "--version": "print the version and exit"}
"""Options without a command."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=sorted(HOW), metavar="SHELL", help="bash, zsh or fish")


def run(options: argparse.Namespace) -> int:
    script: Callable[[Commands], Iterator[str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}[
        options.shell
    ]
    say("\n".join([f"# {HOW[options.shell]}", *script(options.commands)]))
    return 0


def _options(parser: argparse.ArgumentParser) -> Iterator[tuple[argparse.Action, Sequence[str]]]:
    for action in parser._actions:
        if action.option_strings:
            yield action, action.option_strings


def _choices(parser: argparse.ArgumentParser) -> list[str]:
    """What stands where no option does, if that is known; a command may check it by itself."""
    positional = (action for action in parser._actions if not action.option_strings)
    known: list[str] = []
    for action in positional:
        known += map(str, action.choices or ())
        known += getattr(action, KNOWN, ())
    return known


def _does(parser: argparse.ArgumentParser) -> str:
    return parser.description or ""


def _bash(commands: Commands) -> Iterator[str]:
    yield from (
        "_emceepee() {",
        "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} known=",
        "  if ((COMP_CWORD == 1)); then",
        f"    known={shlex.quote(' '.join([*commands, *GENERAL]))}",
        "  else",
        '    case "${COMP_WORDS[1]} $prev" in',
    )
    for name, parser in commands.items():
        for action, spelled in _options(parser):
            if action.nargs == 0:
                continue
            patterns = "|".join(f"'{name} {option}'" for option in spelled)
            words = " ".join(map(str, action.choices or ()))
            yield f"      {patterns}) known={shlex.quote(words)} ;;"
        words = " ".join([*_choices(parser), *(o for _, all_ in _options(parser) for o in all_)])
        yield f"      '{name} '*) known={shlex.quote(words)} ;;"
    yield from (
        "    esac",
        "  fi",
        '  COMPREPLY=($(compgen -W "$known" -- "$cur"))',
        "}",
        "complete -o default -F _emceepee emceepee",
    )


def _zsh(commands: Commands) -> Iterator[str]:
    yield from (
        "_emceepee() {",
        "  local -a known",
        "  if (( CURRENT == 2 )); then",
        "    if [[ $words[CURRENT] == -* ]]; then",
        f"      known=({_described(GENERAL)})",
        "      _describe -o option known",
        "      return",
        "    fi",
        f"    known=({_described({name: _does(each) for name, each in commands.items()})})",
        "    _describe command known",
        "    return",
        "  fi",
        '  case "$words[2] $words[CURRENT-1]" in',
    )
    for name, parser in commands.items():
        for action, spelled in _options(parser):
            if action.nargs == 0:
                continue
            patterns = "|".join(f"'{name} {option}'" for option in spelled)
            words = " ".join(map(str, action.choices or ()))
            yield f"    {patterns}) {f'compadd {words}' if words else '_files'}; return ;;"
        options = {
            option: action.help or "" for action, all_ in _options(parser) for option in all_
        }
        yield f"    '{name} '*) known=({_described(options)})"
        if choices := _choices(parser):
            yield f"      [[ $words[CURRENT] == -* ]] || {{ compadd {' '.join(choices)}; return }}"
        yield "      ;;"
    yield from (
        "  esac",
        "  if [[ $words[CURRENT] == -* ]]; then _describe -o option known; else _files; fi",
        "}",
        "compdef _emceepee emceepee",
    )


def _described(words: Mapping[str, str]) -> str:
    said = ((word.replace(":", "\\:"), about.replace(":", "\\:")) for word, about in words.items())
    return " ".join(shlex.quote(f"{word}:{about}") for word, about in said)


def _fish(commands: Commands) -> Iterator[str]:
    yield from (
        "function __emceepee_is",
        "  set -l words (commandline -opc)",
        '  test "$words[2]" = "$argv[1]"',
        "end",
    )
    first = "'__emceepee_is \"\"'"
    for option, about in GENERAL.items():
        yield f"complete -c emceepee -n {first} -l {option[2:]} -d {_quoted(about)}"
    for name, parser in commands.items():
        about = _quoted(_does(parser))
        yield f"complete -c emceepee -n {first} -f -a {name} -d {about}"
        seen = f"complete -c emceepee -n '__emceepee_is {name}'"
        for choice in _choices(parser):
            yield f"{seen} -f -a {choice}"
        for action, spelled in _options(parser):
            words = [
                f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
                for option in spelled
            ]
            if action.choices:
                words.append(f"-x -a {_quoted(' '.join(map(str, action.choices)))}")
            elif action.nargs != 0:
                words.append("-r")
            yield " ".join([seen, *words, "-d", _quoted(action.help or "")])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"

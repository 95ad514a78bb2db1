"""Completion in Bash, which takes an ``=`` in a word for its end.

Of ``--for opencv==4`` it would complete ``4`` alone, and offer nothing. What was typed is read from
the line here, and what is offered begins where Bash has the word begin.
"""

from __future__ import annotations

import os

from click.shell_completion import BashComplete, CompletionItem, add_completion_class
from click.shell_completion import split_arg_string as split

_SOURCE = """\
%(complete_func)s() {
    local IFS=$'\\n' completion type value
    COMPREPLY=()
    for completion in $(env COMP_LINE="${COMP_LINE:0:COMP_POINT}" \\
            COMP_WORDBREAKS="$COMP_WORDBREAKS" %(complete_var)s=bash_complete $1); do
        IFS=',' read type value <<< "$completion"
        case $type in
            dir) COMPREPLY=(); compopt -o dirnames ;;
            file) COMPREPLY=(); compopt -o default ;;
            plain)
                COMPREPLY+=("$value")
                if [[ $value == *= ]]; then compopt -o nospace 2> /dev/null; fi ;;
        esac
    done
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


@add_completion_class
class Bash(BashComplete):
    """What Bash runs, and what it is answered."""

    source_template = _SOURCE

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one that is begun, and that one."""
        line = os.environ["COMP_LINE"]
        words = split(line)[1:]
        begun = "" if not words or line[-1:].isspace() else words.pop()
        return words, begun

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """What fits, without what Bash takes for words before it."""
        ends = [mark for mark in "=:" if mark in os.environ.get("COMP_WORDBREAKS", "")]
        before = max((incomplete.rfind(mark) + 1 for mark in ends), default=0)
        found = super().get_completions(args, incomplete)
        # Of an option with its value, --for=opencv, only the value is offered.
        option, equals, _ = incomplete.partition("=")
        if equals and option.startswith("--"):
            before = max(before - len(option) - 1, 0)
        for item in found:
            if item.type == "plain":
                item.value = item.value[before:]
        return found

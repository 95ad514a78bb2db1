"""Completion in Bash, which splits words at ``=``.

For ``--for opencv==4`` it would complete the word ``4`` alone, and find nothing. So the words are
read from the whole line here, and the completions begin where Bash's word begins.
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
    """The completion script for Bash, and its answers."""

    source_template = _SOURCE

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the complete words of the line, and the incomplete last one."""
        line = os.environ["COMP_LINE"]
        words = split(line)[1:]
        begun = "" if not words or line[-1:].isspace() else words.pop()
        return words, begun

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """Return the completions, without the part that Bash takes for earlier words."""
        ends = [mark for mark in "=:" if mark in os.environ.get("COMP_WORDBREAKS", "")]
        before = max((incomplete.rfind(mark) + 1 for mark in ends), default=0)
        found = super().get_completions(args, incomplete)
        # For an option with its value, --for=opencv, only the value is completed.
        option, equals, _ = incomplete.partition("=")
        if equals and option.startswith("--"):
            before = max(before - len(option) - 1, 0)
        for item in found:
            if item.type == "plain":
                item.value = item.value[before:]
        return found

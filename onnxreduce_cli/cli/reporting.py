"""The output of every command, on the terminal and as files: one report and its renderings."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from onnxreduce_cli.cli.call import current_call, versions
from onnxreduce_cli.cli.help import WithHelp, long_name
from onnxreduce_cli.cli.streams import say

if TYPE_CHECKING:
    from onnxreduce_cli.model.file.digest import FileDigest
    from onnxreduce_cli.report.drawing import ModelPicture
    from onnxreduce_cli.report.plain import Invocation, Report

#: Standard output as the file of ``--json``.
_STREAM = "-"

#: The values of options that may stand without one.
_ALONE = {"--strip-metadata": "all", "--json": _STREAM}


#: The commands that run models.
_RUNNING = ("convert", "run", "verify")

#: The key by which a command's context notes that the command reports its own errors from there on.
_REPORTS_ERRORS = f"{__name__}.reports_errors"


class WithOptionalValues(WithHelp):
    """A command with options that may stand without their values.

    The word after such an option is not its value, as it may be a model. Only ``--json`` takes a
    word that ends in ``.json``, unless it names an existing file that is no report.

    If the report goes to standard output, wrong usage is reported there too; files are not written
    then, as one may be a model that was named by mistake.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse what was typed, ``--strip-metadata`` as ``--strip-metadata=all``."""
        given = _with_values(args)
        try:
            return super().parse_args(ctx, [*given])
        except click.UsageError as error:
            report_usage_error(str(self.name), given, error)
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Call the command."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            if _REPORTS_ERRORS not in ctx.meta and ctx.params.get("json") == _STREAM:
                Reporter(str(self.name), {"json": _STREAM}).fail(error)
            raise


def _with_values(args: list[str]) -> list[str]:
    """Return the arguments with a value for each option that stands without one."""
    end = args.index("--") if "--" in args else len(args)
    given: list[str] = []
    words = args[:end]
    while words:
        word = words.pop(0)
        if word == "--json" and words and _names_report(words[0]):
            word = f"--json={words.pop(0)}"
        given.append(f"{word}={_ALONE[word]}" if word in _ALONE else word)
    return given + args[end:]


def report_usage_error(command: str, args: list[str], error: Exception) -> None:
    """Print the report of wrong usage if the arguments request a report on standard output.

    Args:
        command: the name of the command, or of the program.
        args: the arguments.
        error: the error of usage.
    """
    given = _with_values(args)
    end = given.index("--") if "--" in given else len(given)
    forms = [word.removeprefix("--json=") for word in given[:end] if word.startswith("--json=")]
    if forms and forms[-1] == _STREAM:
        Reporter(command, {"json": _STREAM}).fail(error)


def _names_report(word: str) -> bool:
    """Return whether a word after ``--json`` is its file: models may be JSON, too."""
    if not word.endswith(".json") or word.startswith("-"):
        return False
    try:
        with open(word, "rb") as file:
            return b'"onnxreduce":' in file.read(400)
    except OSError:
        return True


class Reporter:
    """The output of a command: text as it runs, and at the end a report in the requested forms.

    Attributes:
        to_stdout: whether the report goes to standard output, where then nothing else is printed.
        content: returns the content of the report; None as long as there is none.
        failure_content: returns the content of the report for an exception; None for the default.
        pictures: returns a picture of each model, for a page.
        options: the values of the command's arguments and options, by their names.
    """

    def __init__(self, command: str, files: dict[str, str | None]) -> None:
        """Prepare a report for the files to write, by the form of each."""
        self._command = command
        self._call = current_call()
        self._files_used: list[FileDigest] = []
        self._files = {form: path for form, path in files.items() if path is not None}
        self._annotates = os.environ.get("GITHUB_ACTIONS") == "true" and "junit" in files
        self.to_stdout = self._files.get("json") == _STREAM
        self.content: Callable[[], Any] | None = None
        self.failure_content: Callable[[Exception], Any] | None = None
        self.pictures: Callable[[], list[ModelPicture | None]] = list
        self.options: dict[str, Any] = {}

    @property
    def draws(self) -> bool:
        """True if a page, which shows pictures, is requested."""
        return "html" in self._files

    @property
    def digests(self) -> bool:
        """True if a form is requested that shows the digests of files."""
        return bool({"json", "html"} & self._files.keys())

    @property
    def seconds(self) -> float:
        """How long the command has taken so far."""
        return perf_counter() - self._call.begun

    @property
    def wanted(self) -> bool:
        """True if a report is requested beside the text."""
        return bool(self._files) or self._annotates

    def used(self, found: Callable[[], Iterable[FileDigest]]) -> None:
        """Take note of files that the command reads or writes, if their digests are shown."""
        if self.digests:
            self._files_used += found()

    def say(self, text: str, *, err: bool = False) -> None:
        """Print a text, unless the report goes to standard output."""
        if err or not self.to_stdout:
            say(text, err=err)

    def finish(self, exit_code: int) -> None:
        """Write the report of a command that has not failed."""
        if self.wanted:
            assert self.content is not None
            self._write(exit_code, self.content())

    def fail(self, error: Exception) -> None:
        """Write the report of a command that fails."""
        if not self.wanted:
            return
        from onnxreduce_cli.report.data import Problem, problem
        from onnxreduce_cli.report.failures import failure

        if isinstance(error, click.ClickException):
            self._write(error.exit_code, None, Problem("refused", error.format_message()))
            return
        code = failure(error).code
        if self.failure_content is not None:
            self._write(code, self.failure_content(error))
        else:
            self._write(code, None, problem(error))

    def _write(self, exit_code: int, content: Any, problem: Any = None) -> None:
        from onnxreduce_cli.report.plain import Report

        report = Report(self._command, exit_code, content, self._invocation(), problem)
        self._annotate(report)
        for text, path in self._renderings(report):
            if path == _STREAM:
                say(text)
                continue
            from onnxreduce_cli.model.file.document import make_folder, replacing

            make_folder(os.path.dirname(os.path.abspath(path)))
            with replacing(path) as file:
                file.write(f"{text}\n".encode())

    def _invocation(self) -> Invocation:
        """Return how the command was called, and how long it has taken."""
        from datetime import datetime, timezone

        from onnxreduce_cli.report.plain import Invocation

        return Invocation(
            self._call.arguments,
            self.options,
            datetime.fromtimestamp(self._call.started, timezone.utc).isoformat(timespec="seconds"),
            self.seconds,
            versions(with_runtime=self.digests and self._command in _RUNNING),
            tuple(self._files_used),
        )

    def _renderings(self, report: Report) -> Iterator[tuple[str, str]]:
        """Yield the report in each requested form, with the path of its file."""
        found = report.to_dict()
        for form, path in self._files.items():
            if form == "html":
                from onnxreduce_cli.report.html import page

                yield page(found, [] if report.content is None else self.pictures()), path
            else:
                yield _RENDERERS[form](found), path

    def _annotate(self, report: Report) -> None:
        if not self._annotates:
            return
        from onnxreduce_cli.report.github import annotation_lines, summary

        found = report.to_dict()
        # GitHub's runner reads both streams; standard output may be a model, or JSON.
        for line in annotation_lines(found):
            say(line, err=True, command=True)
        if path := os.environ.get("GITHUB_STEP_SUMMARY"):
            # The other commands of a step write there, too.
            with open(path, "a", encoding="utf-8") as file:
                file.write(f"{summary(found)}\n")


def _as_json(found: dict[str, Any]) -> str:
    from onnxreduce_cli.report.plain import as_json

    return as_json(found)


def _as_junit(found: dict[str, Any]) -> str:
    from onnxreduce_cli.report.junit import junit

    return junit(found)


def _as_code_quality(found: dict[str, Any]) -> str:
    from onnxreduce_cli.report.gitlab import code_quality

    return code_quality(found)


_RENDERERS: dict[str, Callable[[dict[str, Any]], str]] = {
    "json": _as_json,
    "junit": _as_junit,
    "code_quality": _as_code_quality,
}

_OPTIONS = {
    "json": click.option(
        "--json",
        "json",
        type=click.Path(),
        metavar="[FILE.json]",
        help="Print the report as JSON and nothing else, or write it to a file beside the text.",
    ),
    "junit": click.option(
        "--junit",
        type=click.Path(),
        metavar="FILE.xml",
        help="Write a case for each model, output and node that changed (equal nodes once).",
    ),
    "code_quality": click.option(
        "--code-quality",
        type=click.Path(),
        metavar="FILE.json",
        help="Write what failed as GitLab's merge requests show it.",
    ),
    "html": click.option(
        "--report",
        "html",
        type=click.Path(),
        metavar="FILE.html",
        help="Write a page that shows all of it: one file, that needs no network.",
    ),
}


def reporting(command: str, *forms: str) -> Callable[[Callable[..., int]], Callable[..., None]]:
    """Return a decorator that adds the options of reports to a command and ends the program.

    The command gets a `Reporter` as ``reporter``, sets its `content`, and returns its exit code.

    Args:
        command: the command's name.
        forms: the forms beside text and JSON: ``junit``, ``code_quality``, ``html``.
    """
    wanted = ("json", *forms)

    def decorate(call: Callable[..., int]) -> Callable[..., None]:
        @wraps(call)
        def reported(**given: Any) -> None:
            files = {form: given.pop(form) for form in wanted}
            _check_files(files, given)
            reporter = Reporter(command, files)
            context = click.get_current_context()
            context.meta[_REPORTS_ERRORS] = True
            reporter.options = _by_name(context.command, given)
            try:
                code = call(reporter=reporter, **given)
            except Exception as error:
                reporter.fail(error)
                raise
            reporter.finish(code)
            sys.exit(code)

        for form in reversed(wanted):
            reported = _OPTIONS[form](reported)
        return reported

    return decorate


def _by_name(command: click.Command, given: dict[str, Any]) -> dict[str, Any]:
    """Return values by the names of options without dashes, and of arguments in lower case."""
    names = {str(item.name): item for item in command.params}
    return {long_name(names[key]) if key in names else key: value for key, value in given.items()}


def _check_files(files: dict[str, str | None], given: dict[str, Any]) -> None:
    """Refuse to write a report over a file of the command, or two reports into one file."""
    if files["json"] == _STREAM and given.get("output") == _STREAM:
        raise click.UsageError("-o - sends the model to standard output: name a file, --json FILE")
    others = [item for value in given.values() for item in _texts(value)]
    for form, path in files.items():
        if path is None or (form == "json" and path == _STREAM):
            continue
        option = "--report" if form == "html" else f"--{form.replace('_', '-')}"
        if path in ("", _STREAM) or os.path.isdir(path):
            raise click.UsageError(f"{option} needs the name of a file, not {path!r}")
        if form == "html" and not path.lower().endswith((".html", ".htm")):
            raise click.UsageError(f"--report writes a page, as in --report {_page_name(path)}")
        if any(map(path.__eq__, others)) or any(_is_same_file(path, other) for other in others):
            raise click.UsageError(f"{option} {path} would overwrite a file of the command itself")
        others.append(path)


def _page_name(path: str) -> str:
    return f"{os.path.splitext(path)[0]}.html"


def _texts(value: Any) -> list[str]:
    """Return the texts of an option's value, which may be paths."""
    values = value if isinstance(value, tuple | list) else [value]
    return [item for item in values if isinstance(item, str)]


def _is_same_file(path: str, other: str) -> bool:
    return os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)

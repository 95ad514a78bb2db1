"""The README's picture of `convert` at work: what it prints, as a terminal shows it.

python -m docs.generator.screenshot        # writes docs/_static/terminal.svg
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

from docs.generator.session import run
from docs.generator.workplace import prepare

PICTURE = Path(__file__).parents[1] / "_static" / "terminal.svg"

#: A model that is converted, and one of which a node is in the way, with their exit codes.
COMMANDS = {
    "onnxreduce convert model.onnx --for onnxruntime==1.8": 0,
    "onnxreduce convert strings.onnx --opset 9": 1,
}
COLUMNS = 80

#: Pixels: of a character, of a line, and around the text.
CHARACTER, LINE, MARGIN, BAR = 8.0, 19, 18, 34


def session() -> list[str]:
    """Run the commands; return the lines that a terminal shows."""
    lines: list[str] = []
    with TemporaryDirectory() as folder:
        prepare(Path(folder))
        for command, expected in COMMANDS.items():
            ended = run(command, Path(folder), COLUMNS)
            if ended.returncode != expected:
                raise RuntimeError(f"{command}: {ended.stdout}")
            lines += [f"$ {command}", *ended.stdout.rstrip().splitlines(), ""]
    return lines[:-1]


def drawn(lines: list[str]) -> str:
    """Return the lines as SVG; what was typed is set off."""
    width = max(len(line) for line in lines) * CHARACTER + 2 * MARGIN
    height = len(lines) * LINE + BAR + MARGIN
    size = f'viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}"'
    texts = "\n".join(_line(line, place) for place, line in enumerate(lines) if line)
    dots = "".join(
        f'<circle cx="{MARGIN + 20 * place}" cy="{BAR / 2:.0f}" r="6" fill="{colour}"/>'
        for place, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>
<title>{escape(" and ".join(COMMANDS))}</title>
<style>text {{ font: 13px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
white-space: pre; fill: #d5dae3 }} .typed {{ fill: #fff; font-weight: bold }}
.sign {{ fill: #7ee787 }}
</style>
<rect width="100%" height="100%" rx="9" fill="#1c2128"/>{dots}
{texts}
</svg>
"""


def _line(line: str, place: int) -> str:
    y = BAR + LINE * (place + 0.75)
    # Every line is as long as its characters say, whichever font there is.
    length = f'textLength="{len(line) * CHARACTER:.0f}" lengthAdjust="spacingAndGlyphs"'
    text = escape(line)
    if line.startswith("$ "):
        text = f'<tspan class="sign">$</tspan><tspan class="typed">{text[1:]}</tspan>'
    return f'<text x="{MARGIN}" y="{y:.1f}" {length} xml:space="preserve">{text}</text>'


if __name__ == "__main__":
    PICTURE.write_text(drawn(session()), encoding="utf-8")

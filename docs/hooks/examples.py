"""Examples are run when the site is built, and shown with their output and figures.

A script in ``docs/gallery`` becomes a page: a title and a text in its docstring, and code that may
print and that defines a ``figure``. The code blocks of the pages :data:`RUN` are run in one
namespace per page; after each stands what it printed, and its ``figure`` if it made one.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import runpy
import shlex
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

DOCS = Path(__file__).parent.parent
SCRIPTS = DOCS / "gallery"
RUN = (
    "index.md",
    "coming-from.md",
    "guide/*.md",
    "large-data.md",
    "interoperability.md",
    "command-line.md",
    "model-files.md",
)
MARK = re.compile(r"<!-- examples: ([\w ]+) -->")
"""Where scripts are shown, and in which order."""

BLOCK = re.compile(
    r"```(?P<language>python|sh)\n(?P<code>.*?)```(?:\n\n```text\n(?P<expected>.*?)```)?", re.DOTALL
)
"""Code that is run, and what it should print if the page says so."""

COLUMN = re.compile(r"│|\S   +\S")
"""What stands between columns of output."""
COLUMNS = "88"  # characters of the tables that the command line prints


@dataclass(frozen=True)
class Outcome:
    """What a block or a script printed, and its figure as SVG if it made one."""

    printed: str
    svg: bytes | None


def svg_of(figure: Figure, name: str) -> bytes:
    """A figure as SVG, the same whenever it is drawn."""
    import matplotlib

    svg = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "path"}):
        figure.savefig(svg, format="svg", dpi=100, metadata={"Date": None})
    return svg.getvalue()


# --------------------------------------------------------------------------- the gallery


@dataclass(frozen=True)
class Example:
    """A script as it is shown."""

    name: str
    title: str
    text: str
    code: str

    @classmethod
    def read(cls, script: Path) -> Example:
        source = script.read_text(encoding="utf-8")
        tree = ast.parse(source)
        title, _, text = (ast.get_docstring(tree) or "").partition("\n")
        code = "\n".join(source.split("\n")[tree.body[0].end_lineno or 0 :]).strip()
        return cls(script.stem, title.rstrip("."), text.strip(), code)

    def page(self, outcome: Outcome) -> str:
        """The page in Markdown."""
        picture = f"![{self.title}]({self.name}.svg)"
        parts = [f"# {self.title}", self.text, picture, f"```python\n{self.code}\n```"]
        if outcome.printed:
            parts += ["It prints", output(outcome.printed)]
        return "\n\n".join([*parts, f"[The script]({self.name}.py)"]) + "\n"

    def card(self, folder: str) -> str:
        """An entry of an overview: the figure and the title, both links."""
        picture = f"![]({folder}{self.name}.svg)<br>"
        return f"- [{picture}{self.title}]({folder}{self.name}.md)"


@cache
def run(script: Path) -> Outcome:
    """Run a script and keep its output."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        figure = runpy.run_path(str(script))["figure"]
    return Outcome(printed.getvalue(), svg_of(figure, script.stem))


def scripts() -> list[Path]:
    return sorted(SCRIPTS.glob("*.py"))


# --------------------------------------------------------------------------- pages with code


def output(printed: str) -> str:
    """What code printed, as a block of its own kind; columns are not broken into narrow lines."""
    kind = ".text .output .wide" if COLUMN.search(printed) else ".text .output"
    return f"```{{{kind}}}\n{printed.rstrip()}\n```"


def run_page(text: str, name: str) -> Iterator[Outcome]:
    """Run the blocks of a page in their order, in the current folder.

    Of a shell block, the lines that start with ``rwf`` are run.
    """
    namespace: dict[str, object] = {"__name__": "example"}
    for number, block in enumerate(BLOCK.finditer(text), 1):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), mock.patch.dict("os.environ", COLUMNS=COLUMNS):
            if block["language"] == "python":
                code = compile(block["code"], f"{name}, block {number}", "exec", dont_inherit=True)
                exec(code, namespace)
            else:
                for line in re.findall(r"^rwf .*$", block["code"], flags=re.MULTILINE):
                    run_command(line)
        figure = namespace.pop("figure", None)
        svg = None if figure is None else svg_of(figure, f"{name}-{number}")  # type: ignore[arg-type]
        yield Outcome(printed.getvalue(), svg)


def run_command(line: str) -> None:
    """Run a line of the shell that starts with ``rwf``, without another process."""
    from rwf import cli

    with mock.patch.object(sys, "argv", shlex.split(line, comments=True)):
        try:
            cli.main()
        except SystemExit as stopped:
            if stopped.code:
                raise RuntimeError(f"{line!r} ended with exit code {stopped.code}.") from None


@dataclass(frozen=True)
class RunPage:
    """A page whose code has been run: Markdown with output, and figures by their addresses."""

    markdown: str
    figures: dict[str, bytes]

    @classmethod
    def of(cls, path: Path) -> RunPage:
        text = path.read_text(encoding="utf-8")
        figures: dict[str, bytes] = {}
        with (
            tempfile.TemporaryDirectory() as folder,
            contextlib.chdir(folder),
            warnings.catch_warnings(action="ignore"),
        ):
            outcomes = iter([*run_page(text, path.stem)])

        def shown(block: re.Match[str]) -> str:
            outcome = next(outcomes)
            parts = [f"```{block['language']}\n{block['code']}```"]
            if outcome.printed:
                parts.append(output(outcome.printed))
            if outcome.svg is not None:
                file = f"{path.stem}-{len(figures) + 1}.svg"
                figures[file] = outcome.svg
                parts.append(f"![{heading_above(text, block.start())}]({file})")
            return "\n\n".join(parts)

        return cls(BLOCK.sub(shown, text), figures)


def heading_above(text: str, place: int) -> str:
    """The last heading before a place, which says what a figure there shows."""
    found = re.findall(r"^#+ (.*)$", text[:place], flags=re.MULTILINE)
    return str(found[-1])


PAGES: dict[str, RunPage] = {}


# --------------------------------------------------------------------------- hooks of MkDocs


def on_files(files: Files, config: MkDocsConfig) -> Files:
    from mkdocs.structure.files import File

    for script in scripts():
        outcome, address = run(script), f"gallery/{script.stem}"
        page = Example.read(script).page(outcome)
        files.append(File.generated(config, f"{address}.md", content=page))
        files.append(File.generated(config, f"{address}.svg", content=outcome.svg))
    for path in (path for pattern in RUN for path in sorted(DOCS.glob(pattern))):
        own = path.relative_to(DOCS)
        PAGES[own.as_posix()] = found = RunPage.of(path)
        for name, svg in found.figures.items():
            place = (own.parent / name).as_posix()
            files.append(File.generated(config, place, content=svg))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    address = page.file.src_uri
    folder = "" if address.startswith("gallery/") else "gallery/"

    def cards(mark: re.Match[str]) -> str:
        shown = [Example.read(SCRIPTS / f"{name}.py").card(folder) for name in mark[1].split()]
        return "\n".join(['<div class="gallery" markdown>', "", *shown, "", "</div>"])

    text = PAGES[address].markdown if address in PAGES else markdown
    return MARK.sub(cards, text)

"""The gallery: every script in ``docs/gallery`` is run and becomes a page with its figure.

A script has a title and a text in its docstring, and code that may print and that defines a
``figure``. Output and figure are made whenever the site is built, and not stored.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import runpy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

SCRIPTS = Path(__file__).parent.parent / "gallery"
MARK = re.compile(r"<!-- examples: ([\w ]+) -->")
"""Where the overview shows them, and in which order."""

DATA = "RWF_DATA"
"""The environment variable with the folder of data sets that some scripts read."""


@dataclass(frozen=True)
class Outcome:
    """The output of a script, and its figure as SVG."""

    printed: str
    svg: bytes


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

    @property
    def possible(self) -> bool:
        """Whether the data are available."""
        folder = os.environ.get(DATA, "")
        return DATA not in self.code or (bool(folder) and Path(folder).is_dir())

    def page(self, outcome: Outcome | None) -> str:
        """The page in Markdown."""
        missing = f"`{DATA}` was not set to a folder of data sets when this page was made."
        picture = missing if outcome is None else f"![{self.title}]({self.name}.svg)"
        parts = [f"# {self.title}", self.text, picture, f"```python\n{self.code}\n```"]
        if outcome is not None and outcome.printed:
            parts += ["It prints", f"```text\n{outcome.printed}```"]
        return "\n\n".join([*parts, f"[The script]({self.name}.py)"]) + "\n"

    @property
    def card(self) -> str:
        """An entry of the overview: the figure and the title, both links."""
        picture = f"![]({self.name}.svg)<br>" if self.possible else ""
        return f"- [{picture}{self.title}]({self.name}.md)"


@cache
def run(script: Path) -> Outcome:
    """Run a script and keep its output."""
    import matplotlib

    printed, svg = io.StringIO(), io.BytesIO()
    with contextlib.redirect_stdout(printed):
        figure = runpy.run_path(str(script))["figure"]
    with matplotlib.rc_context({"svg.hashsalt": script.stem, "svg.fonttype": "path"}):
        figure.savefig(svg, format="svg", dpi=100, metadata={"Date": None})
    return Outcome(printed.getvalue(), svg.getvalue())


def scripts() -> list[Path]:
    return sorted(SCRIPTS.glob("*.py"))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    from mkdocs.structure.files import File

    for script in scripts():
        example = Example.read(script)
        outcome = run(script) if example.possible else None
        address = f"gallery/{example.name}"
        files.append(File.generated(config, f"{address}.md", content=example.page(outcome)))
        if outcome is not None:
            files.append(File.generated(config, f"{address}.svg", content=outcome.svg))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    def cards(mark: re.Match[str]) -> str:
        shown = [Example.read(SCRIPTS / f"{name}.py").card for name in mark[1].split()]
        return "\n".join(['<div class="gallery" markdown>', "", *shown, "", "</div>"])

    return MARK.sub(cards, markdown)

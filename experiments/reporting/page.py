"""All results as one page of HTML that needs nothing else: no network, no other file.

Its text is that of ``docs/results/``, one page after the other; figures are inside it.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path

from markdown_it import MarkdownIt

from experiments import ROOT
from rwf.diagnostics.report.style import STYLE

PAGES = ("index", "multi-step", "speech", "tables", "protein", "official", "ablations", "peers")
"""The pages of ``docs/results/``, in order."""

MORE_STYLE = """
main { max-width: 90rem; }
th:first-child, td:first-child { text-align: left; min-width: 14rem; }
td:not(:first-child) { white-space: nowrap; }
img { display: block; max-width: 100%; height: auto; margin: 1rem 0; }
p, li { color: inherit; }
p { margin: 0.8rem 0; }
h1 { margin-top: 3rem; }
"""


def write_page(root: Path = ROOT) -> Path:
    """Write ``site/report.html`` from the pages there are; returns its path."""
    path = root / "site" / "report.html"
    path.parent.mkdir(exist_ok=True)
    path.write_text(page(root), encoding="utf-8")
    return path


def page(root: Path = ROOT) -> str:
    """The whole file."""
    folder = root / "docs" / "results"
    body = "\n".join(_section(folder, name) for name in PAGES)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>rwf: the paper's experiments</title>\n<style>{STYLE}{MORE_STYLE}</style>\n"
        f"</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _section(folder: Path, name: str) -> str:
    text = re.sub(r"<!--.*?-->\n?", "", (folder / f"{name}.md").read_text(encoding="utf-8"))
    html = MarkdownIt("commonmark").enable("table").render(_inner_links(text))
    html = html.replace("<table>", '<div class="scroll" tabindex="0"><table>')
    html = html.replace("</table>", "</table></div>")
    html = re.sub(
        r'src="(?P<path>[^"]+\.png)"',
        lambda match: f'src="{_inside(folder / match["path"])}"',
        html,
    )
    return f'<section id="{name}">\n{html}</section>'


def _inner_links(text: str) -> str:
    """Links among these pages lead to sections; of other links only the words stay."""

    def replace(match: re.Match[str]) -> str:
        name = match["target"].split("#")[0].removesuffix(".md")
        return f"[{match['words']}](#{name})" if name in PAGES else match["words"]

    return re.sub(r"(?<!!)\[(?P<words>[^\]]+)\]\((?P<target>[^)]+\.md[^)]*)\)", replace, text)


def _inside(path: Path) -> str:
    """A picture as text."""
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()

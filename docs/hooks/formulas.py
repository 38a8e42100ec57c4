"""Docstrings on the site: formulas become MathML when the site is built, names become links.

Docstrings mark formulas by ``.. math::`` and ``:math:``, and names by roles such as ``:class:``.
This is a Markdown extension for those marks, and the hook that adds it. Browsers render MathML, so
that pages need no script, no fonts and no other host.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.blockprocessors import BlockProcessor
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.preprocessors import Preprocessor

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

AFTER_FENCES = 20
"""A priority below that of fenced code, 25, which is replaced by placeholders first."""

BEFORE_CODE = 195
"""A priority above that of `code`, 190: marks have backticks too."""

ROLES = "class|meth|func|data|mod"


class LiteralBlocks(Preprocessor):  # type: ignore[misc]
    """A paragraph that ends with two colons ends with one; the code after it is indented."""

    def run(self, lines: list[str]) -> list[str]:
        return re.sub(r"::\n\n(?= {4})", ":\n\n", "\n".join(lines)).split("\n")


class FormulaBlocks(BlockProcessor):  # type: ignore[misc]
    """``.. math::`` and the lines that are indented below it: a formula of its own."""

    MARK = ".. math::"

    def test(self, parent: Element, block: str) -> bool:
        return block.startswith(self.MARK)

    def run(self, parent: Element, blocks: list[str]) -> None:
        tex = " ".join(blocks.pop(0).removeprefix(self.MARK).split())
        formula = SubElement(parent, "p", {"class": "formula"})
        formula.text = self.parser.md.htmlStash.store(convert(tex, display="block"))


class FormulasInLines(InlineProcessor):  # type: ignore[misc]
    """``:math:`` and a formula in backticks."""

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:
        return self.md.htmlStash.store(convert(m[1])), m.start(0), m.end(0)


class Names(InlineProcessor):  # type: ignore[misc]
    """A role such as ``:class:`` and a name in backticks: a link if the site has the name."""

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[Element, int, int]:
        name = m[1].removeprefix("~")
        link = Element("autoref", {"identifier": name, "optional": ""})
        SubElement(link, "code").text = name.rpartition(".")[2] if m[1] != name else name
        return link, m.start(0), m.end(0)


class DocStrings(Extension):  # type: ignore[misc]
    """All marks of docstrings."""

    def extendMarkdown(self, md: Markdown) -> None:
        md.preprocessors.register(LiteralBlocks(md), "literal_blocks", AFTER_FENCES)
        md.parser.blockprocessors.register(FormulaBlocks(md.parser), "formula_blocks", 175)
        formulas = FormulasInLines(r":math:`([^`]+)`", md)
        md.inlinePatterns.register(formulas, "formulas", BEFORE_CODE)
        md.inlinePatterns.register(Names(rf":(?:{ROLES}):`([^`]+)`", md), "names", BEFORE_CODE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.markdown_extensions.append(DocStrings())
    return config


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Keep numbers in tables on one line with their errors."""
    return re.sub(r"<td.*?</td>", lambda cell: cell[0].replace(" ± ", "&nbsp;±&nbsp;"), html)

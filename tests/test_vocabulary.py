"""The field's words: none of the private ones that they replaced is left in sources and pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PLACES = [ROOT / "src" / "rwf", ROOT / "docs", ROOT / "paper", ROOT / "README.md"]

WORDS = (
    r"prior=.(projected|cells|sparse|independent)\b", r"[Pp]rojected (weights|features|atoms)",
    r"ProjectedFeatures", r"[Ss]parse weights", r"engine=",
    r"[Tt]ree engine", r"[Ss]econd[ _-]opinion", r"\bvoices?\b", r"\bheard\b", r"mix_columns",
    r"\berror_bars\b", r"\bfill=(True|False)", r"\bwithout_rows\b", r"\bwith_rows\b",
    r"\.coverage\(X", r"\b(Variance|Kernel|Tree|Sparse)Shape\b", r"\b[Ll]essons?\b",
    r"\b[Rr]ecipes?\b(?!s? for)", r"\b[Ss]ketch(es)?\b", r"fit_report_\.starts", r"\bsettle[ds]?\b",
    r"\bascent\b", r"varying noise", r"noise=.varying", r"\bjudges\b", r"\bhonest\b",
    r"\banatomy\b",
    r"\bTally\b", r"\bHands\b", r"\bJournal\b", r"\bKeeper\b", r"\bPrepared\b",
    r"columns? of zeros and ones", r"rwf\.(saving|sources|clusters|frames|streams|tables)\b",
    r"correction_\b", r"SecondOpinion",
)  # fmt: skip
"""The left-hand words of the vocabulary, where they cannot mean something else."""


def pages() -> list[Path]:
    found = [p for place in PLACES for p in ([place] if place.is_file() else place.rglob("*"))]
    return [p for p in found if p.suffix in (".py", ".md", ".html") and "results" not in p.parts]


@pytest.mark.parametrize("word", WORDS)
def test_private_words_are_gone(word):
    pattern = re.compile(word)
    hits = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in pages()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]
    assert not hits, "\n".join(hits)

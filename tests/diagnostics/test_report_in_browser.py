"""A report in a real browser, as wide as a desktop and as narrow as a phone."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess

import pytest
from test_report import KINDS, page

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=20000",
)

FRAME = """<!doctype html>
<iframe id="page" style="border: 0" width="{width}" height="900" srcdoc="{page}"></iframe>
<pre id="seen"></pre>
<script>
addEventListener("load", () => {{
    const page = document.getElementById("page").contentDocument;
    const boxes = [...page.querySelectorAll("h1, h2, p, img, figure, .scroll")];
    document.getElementById("seen").textContent = JSON.stringify({{
        width: page.documentElement.clientWidth,
        needed: page.documentElement.scrollWidth,
        widest: Math.max(...boxes.map((box) => box.getBoundingClientRect().right)),
        images: [...page.images].map((image) => image.complete && image.naturalWidth),
        letters: parseFloat(getComputedStyle(page.body).fontSize),
        scripts: page.scripts.length,
    }});
}});
</script>
"""

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")


def seen(text, width, folder):
    """What a browser makes of a page in a window so wide."""
    path = folder / "frame.html"
    path.write_text(FRAME.format(width=width, page=html.escape(text)), encoding="utf-8")
    command = [
        BROWSER,
        *FLAGS,
        f"--user-data-dir={folder / 'profile'}",
        "--dump-dom",
        path.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return json.loads(re.search(r'<pre id="seen">(.*?)</pre>', done.stdout)[1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [1280, 390, 320], ids=["desktop", "phone", "small phone"])
def test_nothing_sticks_out_and_figures_are_drawn(kind, width, tmp_path):
    found = seen(page(kind), width, tmp_path)
    assert width - 20 <= found["width"] <= width  # a bar to scroll by may take some
    assert found["needed"] <= found["width"]  # wide tables scroll by themselves
    assert found["widest"] <= found["width"]
    assert len(found["images"]) >= 3
    assert all(found["images"])
    assert found["letters"] >= 14
    assert found["scripts"] == 0

"""All results as one page."""

import re

import pytest

from experiments.reporting import page


@pytest.fixture(scope="module")
def html():
    return page.page()


def test_the_page_needs_nothing_else(html):
    assert not re.search(r'(?:src|href)="(?!data:|#)', html)
    assert "<script" not in html
    assert "](" not in re.sub(r"base64,[^\"]*", "", html)


def test_links_lead_to_sections_of_the_page(html):
    targets = set(re.findall(r'href="#([^"]+)"', html))
    assert {"multi-step", "speech", "tables", "protein", "ablations"} <= targets
    assert targets <= set(re.findall(r'<section id="([^"]+)"', html))

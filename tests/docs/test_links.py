"""Every link between documents leads somewhere: to a file that is there, and to a heading in it."""

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
SOURCES = [
    *PAGES,
    ROOT / "Makefile",
    *(path for name in ("src", "docs", "benchmarks") for path in (ROOT / name).rglob("*.py")),
]
LINK = re.compile(r"\]\(([^()\s]+)\)|([\w./-]+\.md#[\w-]+)")


def prose(path):
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)


def anchors(path):
    """The headings of a page as links name them: small letters, words joined by hyphens, the second one with -1."""
    seen, found = Counter(), set()
    for heading in re.findall(r"^#{1,6} (.+)$", prose(path), re.M):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def broken(page):
    """The links of a page that lead nowhere."""
    for linked, named in LINK.findall(prose(page)):
        link = linked or named
        if re.match(r"[a-z]+:", link):  # of the web
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    assert list(broken(page)) == []


def test_every_page_that_is_named_is_there():
    for path in SOURCES:
        for name in re.findall(r"(?<![\w/.-])docs/[\w/.-]+\.(?:md|csv|png|py)\b", path.read_text(encoding="utf-8")):
            assert (ROOT / name).exists(), (path.name, name)


def test_a_link_to_nothing_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# `One`, two\n[a](#one-two) [b](#two) [c](none.md) page.md#one-two page.md#no\n# One two\n## One two\n"
    )
    assert list(broken(page)) == ["#two", "none.md", "page.md#no"]
    assert anchors(page) == {"one-two", "one-two-1", "one-two-2"}

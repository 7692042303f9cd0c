"""Pages of evidence: what was run, when, on which code, and how they are measured anew."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).resolve().parents[1]
EVIDENCE = PROJECT / "docs" / "evidence"


@pytest.fixture(scope="module")
def pages() -> Any:
    spec = importlib.util.spec_from_file_location("pages", PROJECT / "benchmarks" / "pages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["pages"] = module
    spec.loader.exec_module(module)
    return module


def project(root: Path, body: str) -> Path:
    """A project with one script that prints a table, code that it reports on, and a page."""
    (root / "benchmarks").mkdir()
    (root / "benchmarks" / "shared.py").write_text("HEAD = '| loss |'\n")
    (root / "benchmarks" / "table.py").write_text(
        "import sys\nfrom shared import HEAD\nprint('## new')\nprint(HEAD, *sys.argv[1:])\n"
    )
    (root / "src" / "bridgetrack" / "learning").mkdir(parents=True)
    (root / "src" / "bridgetrack" / "learning" / "fit.py").write_text(body)
    page = root / "page.md"
    page.write_text(
        "# Page\n\n<!-- code: learning -->\n\n### Table\n\n"
        '    python benchmarks/table.py --seeds 3 \\\n      --sets "a b"\n\nWords.\n\n'
        "<!-- measured 2020-01-01, code unknown -->\nold\n<!-- end -->\n\nAfter.\n"
    )
    return page


def test_a_result_is_measured_and_put_in_its_place(pages: Any, tmp_path: Path) -> None:
    page = project(tmp_path, "x = 1\n")
    (result,) = pages.results(page.read_text(), "page")
    assert result.commands == ('python benchmarks/table.py --seeds 3 --sets "a b"',)
    assert result.is_older(tmp_path)
    assert "table.py (2020-01-01)" in pages.remark(page.read_text(), "page", tmp_path)
    output = pages.measure(result, tmp_path)
    assert output == "## new\n| loss | --seeds 3 --sets a b"
    code = result.fingerprint(tmp_path)
    text = pages.filled(page.read_text(), result, output, "2026-01-02", code)
    assert f"Words.\n\n<!-- measured 2026-01-02, code {code} -->\n#### new\n| loss |" in text
    assert "old" not in text and text.endswith("<!-- end -->\n\nAfter.\n")
    (again,) = pages.results(text, "page")
    assert not again.is_older(tmp_path)
    assert pages.remark(text, "page", tmp_path) == ""


def test_code_makes_a_page_old_and_comments_do_not(pages: Any, tmp_path: Path) -> None:
    page = project(tmp_path, "def f():\n    return 1\n")
    (result,) = pages.results(page.read_text(), "page")
    code = tmp_path / "src" / "bridgetrack" / "learning" / "fit.py"
    first = result.fingerprint(tmp_path)
    code.write_text('"""What."""\n\n\ndef f():\n    """One."""\n    return 1  # why\n')
    assert result.fingerprint(tmp_path) == first
    seen = {first}
    for path, text in (
        (code, "def f():\n    return 2\n"),
        (tmp_path / "benchmarks" / "shared.py", "HEAD = '| wrong |'\n"),
        (code.with_name("weights.json"), "{}"),
    ):
        path.write_text(text)
        seen.add(result.fingerprint(tmp_path))
    assert len(seen) == 4


def test_a_result_without_commands_is_refused(pages: Any, tmp_path: Path) -> None:
    text = project(tmp_path, "").read_text()
    with pytest.raises(pages.PageError, match=r"page\.md, line 12: no commands"):
        pages.results(text.replace("    python", "python").replace("      --sets", ""), "page")
    with pytest.raises(pages.PageError, match="code: "):
        pages.results(text.replace("<!-- code: learning -->", ""), "page")


def test_pages_name_scripts_and_folders_that_are_there(pages: Any) -> None:
    listed = (EVIDENCE / "README.md").read_text(encoding="utf-8")
    site = (PROJECT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in EVIDENCE.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        found = pages.results(text, page.stem)
        assert found or page.stem == "README", page
        assert f"({page.name})" in listed or page.stem == "README"
        assert f"evidence/{page.name}" in site
        assert text.count("<!-- measured ") == text.count("<!-- end -->") == len(found)
        for result in found:
            assert result.scripts
            assert [s for s in result.scripts if not (PROJECT / "benchmarks" / s).is_file()] == []
            package = PROJECT / "src" / "bridgetrack"
            assert [f for f in result.folders if not (package / f).exists()] == []


def test_wrong_and_missed_links_are_told_by_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cell 1 divides into 3 and 4; 2 goes on as 5; 0 ends, 6 begins; 8 comes two frames after 3."""
    monkeypatch.syspath_prepend(str(PROJECT / "benchmarks"))
    link_kinds = importlib.import_module("link_kinds").link_kinds
    frame = [0, 0, 0, 1, 1, 1, 1, 2, 3]
    true = [(1, 3), (1, 4), (2, 5), (4, 7)]
    assert set(link_kinds(frame, true, true).values()) == {0}
    found = [(0, 6), (1, 3), (2, 5), (2, 4), (3, 8), (5, 7)]
    assert link_kinds(frame, true, found) == {
        "missed_moves": 1,  # 4 to 7
        "missed_daughters": 1,  # 1 to 4
        "over_a_gap": 1,  # 3 to 8
        "false_daughters": 1,  # 2 to 4, beside 2 to 5
        "joined": 2,  # 0 to 6, and 5, which ends, to 7
        "exchanged": 0,
    }
    swapped = [(1, 3), (1, 5), (2, 4), (4, 7)]
    assert link_kinds(frame, true, swapped) == {
        "missed_moves": 1, "missed_daughters": 1, "over_a_gap": 0,
        "false_daughters": 0, "joined": 0, "exchanged": 2,
    }  # fmt: skip

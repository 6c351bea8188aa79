"""Every block of every page runs, every link leads somewhere."""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.blocks import Block, blocks, commands_not_run, pages
from tests.docs.running import BlockError, commands, missing, run, run_shell

ROOT = Path(__file__).parents[2]
PAGES = pages(ROOT)
LINK = re.compile(r"\[[^\]]*\]\((?!\w+:|#)(?P<target>[^)\s#]+)(?:#[^)]*)?\)")


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_block_of_a_page_does_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, module = page.read_text("utf-8"), ModuleType(named(page))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for block in blocks(text):
        try:
            run(block, tmp_path, module, commands_not_run(text))
        except Exception as error:
            error.add_note(f"in the block of {named(page)}:{block.line}")
            raise


@pytest.mark.parametrize("page", [*sorted(ROOT.glob("*.md")), *PAGES[1:]], ids=named)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    targets = [link["target"] for link in LINK.finditer(page.read_text("utf-8"))]
    assert [target for target in targets if not (page.parent / target).exists()] == []


def block(language: str, text: str, *, file: str = "", not_run: str | None = None) -> Block:
    return Block(language=language, text=text, line=1, file=file, not_run=not_run)


def test_blocks_are_found_with_the_comments_right_before_them() -> None:
    page = (
        "<!-- file: a.yaml -->\n\n```yaml\na: 1\n```\n<!-- docs: not run: it waits -->\n~~~python\nx\n~~~\n"
        "<!-- file: b.yaml -->\nSome text.\n```text\nb\n```\n- in a list\n\n  ```console\n  $ ls\n  ```\n"
    )
    found = list(blocks(page))
    assert [(each.language, each.text, each.line, each.file, each.not_run) for each in found] == [
        ("yaml", "a: 1", 3, "a.yaml", None),
        ("python", "x", 7, "", "it waits"),
        ("text", "b", 12, "", None),
        ("console", "$ ls", 17, "", None),
    ]


def test_a_block_that_is_never_closed_is_an_error() -> None:
    with pytest.raises(ValueError, match="line 2 is never closed"):
        list(blocks("text\n```python\nx = 1\n"))


def test_python_blocks_share_their_names(tmp_path: Path) -> None:
    module = ModuleType("page")
    run(block("python", "x = 20"), tmp_path, module, frozenset())
    run(block("python", "y = x + 1\nassert __name__ == 'page'"), tmp_path, module, frozenset())
    assert module.y == 21
    with pytest.raises(AssertionError):
        run(block("python", "assert x == 21"), tmp_path, module, frozenset())


def test_a_block_with_a_file_is_written_there(tmp_path: Path) -> None:
    run(block("yaml", "a: 1", file="conf/a.yaml"), tmp_path, ModuleType("page"), frozenset())
    assert (tmp_path / "conf" / "a.yaml").read_text("utf-8") == "a: 1\n"


@pytest.mark.parametrize("wrong", [block("yaml", "a: 1"), block("", "x"), block("python", "x", not_run="")])
def test_a_block_that_nothing_is_said_about_is_an_error(wrong: Block, tmp_path: Path) -> None:
    with pytest.raises(BlockError):
        run(wrong, tmp_path, ModuleType("page"), frozenset())


def test_a_block_that_says_why_it_is_not_run_is_not_run(tmp_path: Path) -> None:
    run(block("python", "raise SystemExit", not_run="it ends"), tmp_path, ModuleType("page"), frozenset())


def test_commands_print_what_is_shown_in_that_order_among_other_lines(tmp_path: Path) -> None:
    run_shell("$ printf 'a\\nb  1.5\\nc\\n'\nb ... \nc\n$ cd / && pwd\n/\n$ pwd\n/", tmp_path, frozenset())
    for wrong in ("$ printf 'a\\nb\\n'\nb\na", "$ echo a\nb", "$ exit_codes_count_without_output", "$ false"):
        with pytest.raises(BlockError):
            run_shell(wrong, tmp_path, frozenset())


def test_a_command_that_must_fail_shows_what_it_prints(tmp_path: Path) -> None:
    run_shell("$ echo no; false\nno", tmp_path, frozenset())


def test_a_command_goes_on_after_its_first_line() -> None:
    assert [each.text for each in commands("$ cat <<X\n> hello\n> X\nhello")] == ["cat <<X\nhello\nX"]
    with pytest.raises(BlockError, match="before the first command"):
        commands("hello\n$ ls")


def test_commands_that_a_page_only_shows_are_not_run(tmp_path: Path) -> None:
    page = "<!-- docs: commands not run: false, make demo: it takes a person -->"
    assert commands_not_run(page) == {"false", "make demo"}
    run_shell("$ false\n$ true", tmp_path, commands_not_run(page))


def test_what_is_left_out_of_shown_output_may_be_anything() -> None:
    assert missing(["a ... z"], "a lot of things up to z") == ""
    assert missing(["...", "b"], "a\nb") == ""
    assert missing(["a", "a"], "a") == "a"
    assert missing(["a."], "ab") == "a."

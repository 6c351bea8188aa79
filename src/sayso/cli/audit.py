"""`sayso audit`: reading, verifying, exporting and signing what happened."""

import csv
import json
import sys
from collections import deque
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TextIO

import typer
from rich.text import Text

from sayso.actions import Json
from sayso.audit import Entry, Report, verify
from sayso.cli.exits import Exit
from sayso.cli.history import facts_of, who_did
from sayso.cli.inbox import ID_SHOWN
from sayso.cli.opening import building, reading, settings_for
from sayso.cli.options import ConfigOption, JsonOption, StoreOption
from sayso.cli.printing import (
    BAD,
    GOOD,
    LABEL,
    WARNING,
    Column,
    plural,
    print_json,
    print_line,
    print_rows,
    terminal,
)
from sayso.cli.records import entry_json
from sayso.clock import clock_text
from sayso.config import Parts
from sayso.errors import ConfigError, UsageError
from sayso.presentation import visible
from sayso.worker import checkpoint as sign_checkpoint


class Format(StrEnum):
    """How the audit is written out."""

    JSONL = "jsonl"
    CSV = "csv"


_COLUMNS = (
    Column(title="no.", width=9, right=True),
    Column(title="when", width=23),
    Column(title="what", width=12),
    Column(title="approval", width=ID_SHOWN),
    Column(title="who", width=22),
    Column(title="facts"),
)
_QUESTIONS = (
    ("integrity", "no entry was changed, removed from the middle or moved"),
    ("completeness", "nothing is missing, and every status is what the entries say"),
    ("attribution", "every decision names a person and a door, every checkpoint its key"),
)
_FORMULA = ("=", "+", "-", "@")


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help="Read, verify, export and sign what happened.", rich_markup_mode=None)
    group.command("tail")(tail)
    group.command("verify")(verify_audit)
    group.command("export")(export)
    group.command("checkpoint")(checkpoint)
    app.add_typer(group, name="audit")


def tail(
    *,
    lines: Annotated[int, typer.Option("-n", "--lines", min=1, metavar="N", help="How many entries.")] = 20,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Print the newest entries, the newest last."""
    with reading(config, store) as door:
        written = sum(n for n, _ in door.store.heads().values())
        entries = list(deque(door.store.entries(after=max(0, written - lines)), maxlen=lines))
    if as_json:
        for entry in entries:
            print_json(entry_json(entry))
        return
    piped = not terminal().is_terminal
    print_rows(_COLUMNS, (_row(entry, whole=piped) for entry in entries))


def verify_audit(
    *, as_json: JsonOption = False, config: ConfigOption = None, store: StoreOption = None
) -> int:
    """Check that nothing was changed and nothing is missing.

    The exit code is 5 when something is wrong.
    """
    with _parts(config, store) as parts:
        opened = parts.store
        report = verify(
            opened.entries(),
            parts.checkpoints.read() if parts.checkpoints else (),
            key=parts.signer.key if parts.signer else "",
            heads=opened.heads(),
            statuses=opened.statuses(),
        )
    if as_json:
        print_json(_report_json(report))
    else:
        _print_report(report)
    return Exit.DONE if report.sound else Exit.NOT_SOUND


def export(
    *,
    format_: Annotated[
        Format,
        typer.Option("--format", metavar="jsonl|csv", help="JSON lines hold every byte that is hashed."),
    ] = (Format.JSONL),
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to; it must not exist yet.")
    ] = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Write out the whole audit, in order.

    In CSV, a value that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    with reading(config, store) as door, _output(output) as file:
        count = _write(door.store.entries(), file, format_)
    if as_json and output:
        print_json({"entries": count, "output": str(output), "format": format_.value})
    elif output:
        print_line(f"{plural(count, 'entry', 'entries')} written to {visible(str(output))}")


def checkpoint(
    *, as_json: JsonOption = False, config: ConfigOption = None, store: StoreOption = None
) -> None:
    """Sign everything written so far.

    What vanishes later no longer matches the checkpoint.
    """
    with _parts(config, store) as parts:
        if parts.checkpoints is None or parts.signer is None:
            raise ConfigError("this store has no checkpoints", hint="use a store in a file")
        number = sign_checkpoint(parts.store, parts.checkpoints, parts.signer)
        known = parts.checkpoints.read()
    last = known[-1] if known else None
    if as_json:
        found: dict[str, Json] | None = None
        if last:
            found = {
                "number": last.number,
                "entries": last.entries,
                "seq": last.seq,
                "root": last.root,
                "at": last.at,
            }
        print_json({"signed": number > 0, "checkpoint": found})
    elif number and last:
        print_line(
            f"Checkpoint {number} signed; it covers {plural(last.entries, 'entry', 'entries')}.", style=GOOD
        )
    else:
        print_line("Nothing was written since the last checkpoint." if last else "The audit is empty.")


@contextmanager
def _parts(config: ConfigOption, store: StoreOption) -> Generator[Parts]:
    """Open the store with its key and checkpoints; policy and people are not needed."""
    with building(replace(settings_for(config, store), policy="", people={})) as parts:
        yield parts


def _row(entry: Entry, *, whole: bool) -> tuple[str, ...]:
    return (
        str(entry.seq),
        clock_text(entry.at),
        entry.kind,
        entry.approval_id if whole else entry.approval_id[:ID_SHOWN],
        who_did(entry),
        facts_of(entry),
    )


def _print_report(report: Report) -> None:
    console = terminal()
    for question, meaning in _QUESTIONS:
        found = [finding for finding in report.findings if finding.question == question]
        verdict = Text("ok", style=GOOD) if not found else Text("NOT SOUND", style=f"bold {BAD}")
        line = Text.assemble(f"{question:<14}", verdict, ("" if found else f"  {meaning}", LABEL))
        console.print(line, soft_wrap=True)
        for finding in found:
            console.print(Text(f"  {visible(finding.message)}", style=BAD), soft_wrap=True)
    read = f"{plural(report.entries, 'entry', 'entries')} in {plural(report.chains, 'thread')}"
    signed = plural(report.checkpoints, "signed checkpoint")
    console.print(Text(f"{read}, {signed}.", style=LABEL), soft_wrap=True)
    if report.uncovered:
        uncovered = f"{plural(report.uncovered, 'entry is', 'entries are')} not covered by a checkpoint yet: "
        console.print(Text(f"{uncovered}run `sayso audit checkpoint`.", style=WARNING), soft_wrap=True)


def _report_json(report: Report) -> dict[str, Json]:
    return {
        "sound": report.sound,
        **{question: report.holds(question) for question, _ in _QUESTIONS},
        "entries": report.entries,
        "threads": report.chains,
        "checkpoints": report.checkpoints,
        "uncovered": report.uncovered,
        "findings": [
            {"question": finding.question, "seq": finding.seq, "message": finding.message}
            for finding in report.findings
        ],
    }


@contextmanager
def _output(path: Path | None) -> Generator[TextIO]:
    if path is None:
        yield sys.stdout
        return
    try:
        with path.open("x", encoding="utf-8", newline="") as file:
            yield file
    except FileExistsError:
        raise UsageError(f"`{path}` exists already", hint="name another file, or remove it") from None
    except OSError as error:
        raise UsageError(f"`{path}` cannot be written: {error.strerror}", hint="check the path") from None


def _write(entries: Iterable[Entry], file: TextIO, format_: Format) -> int:
    count = 0
    table = csv.writer(file, lineterminator="\n")
    if format_ is Format.CSV:
        table.writerow(("seq", "thread", "n", "at", "kind", "approval_id", "body", "hash"))
    for entry in entries:
        count += 1
        if format_ is Format.CSV:
            cells = (entry.seq, entry.thread, entry.n, entry.at, entry.kind, entry.approval_id, entry.body)
            table.writerow((*map(_cell, cells), entry.hash.hex()))
        else:
            file.write(json.dumps(_exported(entry)) + "\n")
    return count


def _exported(entry: Entry) -> dict[str, Json]:
    """Return an entry with its body as the very text that is hashed, so that anybody can check the chain."""
    return {**entry_json(entry), "body": entry.body}


def _cell(value: str | int) -> str | int:
    if isinstance(value, int):
        return value
    shown = visible(value)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown

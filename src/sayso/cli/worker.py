"""`sayso worker`: expiry, delivery and checkpoints, for as long as it runs."""

import signal
import sys
import threading
from typing import Annotated

import typer

from sayso.channels import Channel, TerminalChannel
from sayso.cli.opening import building, settings_for
from sayso.cli.options import ConfigOption, JsonOption, StoreOption
from sayso.cli.printing import plural, print_json, print_line, print_remark
from sayso.config import Parts
from sayso.presentation import Presentation
from sayso.worker import Pass, deliver, run_once, sweep


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(worker)


def worker(
    *,
    once: Annotated[bool, typer.Option("--once", help="Do what is due now, then leave.")] = False,
    interval: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="How often to look for what time has changed.")
    ] = 5.0,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Expire what nobody answered, tell people, sign the audit.

    Runs until Ctrl-C or SIGTERM; several may run on one store. What happens in between is
    told at once; the interval is for what only time changes.
    """
    with building(settings_for(config, store)) as parts:
        channel = _JsonChannel() if as_json else TerminalChannel(sys.stdout)
        _say(_pass(parts, channel), as_json=as_json, always=once)
        if not once:
            _run(parts, channel, interval, as_json=as_json)


class _JsonChannel:
    """Notices as JSON lines."""

    name = "json"

    def announce(self, kind: str, card: Presentation) -> None:
        """Print what happened and what it is about."""
        print_json({"notice": {"kind": kind, "approval_id": card.approval_id, "headline": card.headline}})


def _run(parts: Parts, channel: Channel, interval: float, *, as_json: bool) -> None:
    """Go on until SIGTERM: tell at once what other processes did, look at the time every interval."""
    stirred, ended = threading.Event(), threading.Event()

    def end(_signal: int, _frame: object) -> None:
        ended.set()
        stirred.set()

    signal.signal(signal.SIGTERM, end)
    parts.store.subscribe(lambda _: stirred.set())
    if not as_json:
        print_remark(f"Working every {interval:g} s; Ctrl-C ends.")
    while not ended.is_set():
        if stirred.wait(interval) and not ended.is_set():
            stirred.clear()
            expired, unknown, damaged = sweep(parts.store)
            _say(
                Pass(
                    expired=expired,
                    unknown=unknown,
                    damaged=damaged,
                    delivered=deliver(parts.store, [channel]),
                ),
                as_json=as_json,
            )
        else:
            _say(_pass(parts, channel), as_json=as_json)


def _pass(parts: Parts, channel: Channel) -> Pass:
    return run_once(parts.store, channels=[channel], checkpoints=parts.checkpoints, signer=parts.signer)


def _say(done: Pass, *, as_json: bool, always: bool = False) -> None:
    """Print what a pass did, if it did anything."""
    did = done.expired or done.unknown or done.checkpoint or done.damaged
    if not (did or always):
        return
    if as_json:
        print_json(
            {
                "expired": done.expired,
                "unknown": done.unknown,
                "damaged": done.damaged,
                "delivered": done.delivered,
                "checkpoint": done.checkpoint,
            }
        )
        return
    signed = f", checkpoint {done.checkpoint} signed" if done.checkpoint else ""
    told = plural(done.delivered, "notice")
    print_line(f"{done.expired} expired, {done.unknown} of unknown outcome, {told} delivered{signed}")
    if done.damaged:
        print_line(f"{plural(done.damaged, 'overdue approval')} cannot be trusted: run `sayso audit verify`.")

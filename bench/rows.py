"""The rows: one function each, named as on the command line."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial

from bench import apart, filled, floors, peers, subject
from bench.filled import Kept
from bench.harness import CPU, RAW, Contender, Measure, Step, timed, timed_async
from bench.table import Line, Row, RowMaker, Target
from bench.work import Scale

SAYSO, FLOOR = "Sayso", "floor"
HOLDPOINT, HOLDPOINT_FULL = "holdpoint", "holdpoint, flushed"
BARRIER = "AgentBarrier"


def judge(scale: Scale, _: ExitStack) -> Row:
    """Judge a call that needs nobody: policy, digest, audit record in memory."""
    count = scale.count(200)

    def cpu(name: str, opener: Callable[[], AbstractContextManager[Step]]) -> Contender:
        return Contender(name=name, measure=timed(opener, count=count, batch=50, clock=CPU))

    def barrier() -> AbstractContextManager[Step]:
        return peers.agentbarrier_step(scale.folder, lambda opened: opened.allow, rules=20)

    sizes = (2, 20, 200)
    contenders = [
        _raw(scale),
        *(
            cpu(f"{SAYSO}, {rules} rules", partial(subject.memory, _judge, subject.policy(rules)))
            for rules in sizes
        ),
        cpu(f"{SAYSO}, predicate", partial(subject.memory, _judge, subject.policy(20, predicate=True))),
        cpu(FLOOR, lambda: nullcontext(floors.JudgeFloor().judge)),
        Contender(name=BARRIER, measure=timed(barrier, count=scale.count(150))),
    ]
    flat = Target(against=f"{SAYSO}, 2 rules", at_most=1.2)
    usual = (Target(against=FLOOR, at_most=2), Target(against=BARRIER, at_most=1 / 45))
    lines = [
        Line(
            work=f"judge a call that needs nobody, {rules} rules",
            subject=f"{SAYSO}, {rules} rules",
            floor=FLOOR,
            peers=(BARRIER,),
            targets=(*usual, flat) if rules > sizes[0] else usual,
        )
        for rules in sizes
    ]
    predicate = Line(
        work="the same, with a Python predicate", subject=f"{SAYSO}, predicate", floor=FLOOR, peers=(BARRIER,)
    )
    return Row(contenders=contenders, lines=(*lines, predicate))


def memory(scale: Scale, _: ExitStack) -> Row:
    """Do the whole cycle in memory."""
    count = scale.count(600)
    held, held_floor, bare = f"{SAYSO}, held", f"{FLOOR}, held", "bare steps"
    contenders = [
        Contender(name=SAYSO, measure=timed(lambda: subject.memory(_cycle), count=count)),
        Contender(name=FLOOR, measure=timed(floors.sqlite_memory_cycle, count=count)),
        Contender(name=bare, measure=timed(lambda: nullcontext(floors.MemoryFloor().cycle), count=count)),
        Contender(name=HOLDPOINT, measure=timed(peers.holdpoint_memory_cycle, count=count)),
        Contender(name=held, measure=timed_async(lambda: subject.held_task(":memory:"), count=count)),
        Contender(name=held_floor, measure=timed_async(floors.held_task, count=count)),
    ]
    targets = (Target(against=FLOOR, at_most=2.5), Target(against=HOLDPOINT, at_most=0.5))
    lines = (
        Line(
            work="whole cycle in memory", subject=SAYSO, floor=FLOOR, peers=(HOLDPOINT, bare), targets=targets
        ),
        Line(
            work="the same, the agent waiting as a task", subject=held, floor=held_floor, peers=(HOLDPOINT,)
        ),
    )
    return Row(contenders=contenders, lines=lines)


def durable(scale: Scale, _: ExitStack) -> Row:
    """Open, decide, claim, complete: one agent, SQLite, a flush at each commit."""
    count, folder = scale.count(150), scale.folder
    held = f"{SAYSO}, held"
    contenders = [
        *_durable_peers(scale),
        Contender(name=SAYSO, measure=timed(lambda: subject.on_file(folder, _cycle), count=count)),
        Contender(name=held, measure=timed(lambda: subject.held(folder), count=count)),
        Contender(name=FLOOR, measure=timed(lambda: floors.file_cycle(folder), count=count)),
    ]
    everybody = (RAW, HOLDPOINT_FULL, HOLDPOINT, BARRIER)
    targets = (
        Target(against=RAW, at_most=5),
        Target(against=HOLDPOINT_FULL, at_most=0.5),
        Target(against=BARRIER, at_most=0.5),
        Target(against=HOLDPOINT, at_most=0.8),
    )
    lines = (
        Line(
            work="open, decide, claim, complete on SQLite",
            subject=SAYSO,
            floor=FLOOR,
            peers=everybody,
            targets=targets,
        ),
        Line(work="the same, the agent waiting in its thread", subject=held, floor=FLOOR, peers=everybody),
    )
    return Row(contenders=contenders, lines=lines)


def crowd(scale: Scale, _: ExitStack) -> Row:
    """256 agents at once on SQLite, next to peers one at a time."""
    agents, waves, folder = scale.count(256), 4, scale.folder
    contenders = [
        *_durable_peers(scale),
        Contender(name=SAYSO, measure=lambda: asyncio.run(subject.crowd_rate(folder, agents, waves))),
        Contender(name=FLOOR, measure=lambda: asyncio.run(floors.crowd(folder, agents, waves))),
    ]
    line = Line(
        work=f"{agents} agents at once on SQLite",
        subject=SAYSO,
        floor=FLOOR,
        peers=(HOLDPOINT_FULL, HOLDPOINT, BARRIER),
        targets=(Target(against=FLOOR, at_most=2),),
        unit="rate",
    )
    return Row(contenders=contenders, lines=(line,))


def page(scale: Scale, kept: ExitStack) -> Row:
    """Pages of fifty among very many pending requests."""
    big = scale.count(100_000)
    sizes = [min(1_000, big), big, *([1_000_000] if scale.full else [])]
    count = scale.count(100)
    contenders: list[Contender] = []
    for size in sizes:
        doors = Kept(kept, partial(filled.sayso, scale.folder, size))
        contenders += [
            Contender(name=f"{SAYSO}, {size:,}", measure=doors.timed(lambda opened: opened.page, count)),
            Contender(name=f"{SAYSO}, deep in {size:,}", measure=doors.timed(partial(_deep, size), count)),
        ]
    floor = Kept(kept, partial(filled.floor, scale.folder, big))
    holdpoint = Kept(kept, partial(filled.holdpoint, scale.folder, big))
    contenders += [
        Contender(name=FLOOR, measure=floor.timed(lambda opened: lambda: opened.page(0), count)),
        Contender(name=HOLDPOINT, measure=holdpoint.timed(lambda opened: opened.page, count)),
    ]
    first = f"{SAYSO}, {big:,}"
    small = Target(against=f"{SAYSO}, {sizes[0]:,}", at_most=2)
    lines = [
        Line(
            work=f"first page of 50 among {big:,}",
            subject=first,
            floor=FLOOR,
            peers=(HOLDPOINT,),
            targets=(Target(against=HOLDPOINT, at_most=0.5), small),
        ),
        Line(
            work=f"page in the middle of {big:,}",
            subject=f"{SAYSO}, deep in {big:,}",
            floor=FLOOR,
            targets=(Target(against=first, at_most=1.5),),
        ),
    ]
    if scale.full:
        million = f"{SAYSO}, {sizes[-1]:,}"
        lines.append(Line(work="first page among 1,000,000", subject=million, floor=FLOOR, targets=(small,)))
    return Row(contenders=contenders, lines=lines)


def due(scale: Scale, kept: ExitStack) -> Row:
    """Look for deadlines with nothing due, and sweep what is due."""
    size, count, swept = scale.count(100_000), scale.count(60), scale.count(1000)
    doors = Kept(kept, partial(filled.sayso, scale.folder, size))
    floor = Kept(kept, partial(filled.floor, scale.folder, size))
    holdpoint = Kept(kept, partial(filled.holdpoint, scale.folder, size))
    contenders = [
        _raw(scale),
        Contender(name=SAYSO, measure=doors.timed(lambda opened: opened.sweep, count)),
        Contender(name=FLOOR, measure=floor.timed(lambda opened: lambda: opened.due(1), count)),
        Contender(name=HOLDPOINT, measure=holdpoint.timed(lambda opened: opened.expire, min(count, 12))),
        Contender(name=f"{SAYSO}, sweep", measure=partial(filled.sweep_sayso, scale.folder, swept)),
        Contender(name=f"{FLOOR}, sweep", measure=partial(filled.sweep_floor, scale.folder, swept)),
        Contender(name=f"{HOLDPOINT}, sweep", measure=partial(filled.sweep_holdpoint, scale.folder, swept)),
    ]
    lines = (
        Line(
            work=f"deadline check, nothing due, {size:,} pending",
            subject=SAYSO,
            floor=FLOOR,
            peers=(HOLDPOINT,),
            targets=(Target(at_most=50e-6),),
        ),
        Line(
            work="sweep, each",
            subject=f"{SAYSO}, sweep",
            floor=f"{FLOOR}, sweep",
            peers=(f"{HOLDPOINT}, sweep",),
            targets=(Target(against=f"{HOLDPOINT}, sweep", at_most=0.5),),
        ),
    )
    return Row(contenders=contenders, lines=lines)


def waiters(scale: Scale, _: ExitStack) -> Row:
    """Many waiting agents in one process."""
    count, folder = scale.count(10_000), scale.folder
    contenders = [
        Contender(name=f"{name}, {figure}", measure=apart.waiters(kind, figure, folder, count))
        for name, kind in ((SAYSO, "sayso"), (FLOOR, "floor"))
        for figure in ("bytes", "wake")
    ]
    lines = (
        Line(
            work=f"waiting agent, {count:,} in one process",
            subject=f"{SAYSO}, bytes",
            floor=f"{FLOOR}, bytes",
            targets=(Target(at_most=4096),),
            unit="bytes",
        ),
        Line(
            work="wake them all",
            subject=f"{SAYSO}, wake",
            floor=f"{FLOOR}, wake",
            targets=(Target(against=f"{FLOOR}, wake", at_most=4),),
        ),
    )
    return Row(contenders=contenders, lines=lines)


def size(scale: Scale, _: ExitStack) -> Row:
    """Bytes per pending approval of an 820-byte request."""
    count, folder = scale.count(2000), scale.folder
    talks = (10, 1000)
    contenders = [
        *(
            Contender(
                name=f"{SAYSO}, {talk} messages", measure=partial(filled.bytes_sayso, folder, count, talk)
            )
            for talk in talks
        ),
        Contender(name=FLOOR, measure=partial(filled.bytes_floor, folder, count)),
        Contender(name=HOLDPOINT, measure=partial(filled.bytes_holdpoint, folder, count)),
        Contender(name=BARRIER, measure=partial(filled.bytes_agentbarrier, folder, count)),
    ]
    lines = [
        Line(
            work=f"bytes per pending approval, conversation of {talk:,} messages",
            subject=f"{SAYSO}, {talk} messages",
            floor=FLOOR,
            peers=(HOLDPOINT, BARRIER),
            targets=(Target(at_most=1536), Target(against=f"{SAYSO}, {talks[0]} messages", at_most=1.1)),
            unit="bytes",
        )
        for talk in talks
    ]
    return Row(contenders=contenders, lines=lines, rounds=3)


def bell(scale: Scale, _: ExitStack) -> Row:
    """From a decision to the permit of the agent in another process."""
    cycles, folder = scale.count(60), scale.folder
    contenders = [
        _raw(scale),
        Contender(name=SAYSO, measure=apart.woken("sayso", folder, subject.approver, cycles)),
        Contender(name=FLOOR, measure=apart.woken("floor", folder, apart.floor_approver, cycles)),
    ]
    line = Line(
        work="decision to the permit in another process",
        subject=SAYSO,
        floor=FLOOR,
        targets=(Target(against=FLOOR, at_most=2),),
    )
    return Row(contenders=contenders, lines=(line,))


def audit(scale: Scale, kept: ExitStack) -> Row:
    """Append to the audit in batches, and verify it."""
    entries = 1_000_000 if scale.full else scale.count(100_000)
    receipts, batches, folder = scale.count(1500), scale.count(30), scale.folder
    doors = Kept(kept, partial(filled.sayso, folder, 0, entries))
    floor = Kept(kept, partial(filled.floor, folder, 0, entries))
    barrier = Kept(kept, partial(filled.agentbarrier, folder, receipts))
    contenders = [
        _raw(scale),
        Contender(
            name=SAYSO, measure=_each(timed(partial(subject.on_file, folder, _append), count=batches), 1000)
        ),
        Contender(name=FLOOR, measure=_each(timed(partial(floors.append, folder), count=batches), 1000)),
        Contender(
            name=f"{SAYSO}, verify", measure=_each(doors.timed(lambda opened: opened.verify, 3), entries)
        ),
        Contender(
            name=f"{FLOOR}, verify", measure=_each(floor.timed(lambda opened: opened.verify, 3), entries)
        ),
        Contender(
            name=f"{BARRIER}, verify",
            measure=_each(barrier.timed(lambda opened: opened.store.verify_receipt_chain, 3), receipts),
        ),
    ]
    lines = (
        Line(
            work="append to the audit, in batches of 1,000",
            subject=SAYSO,
            floor=FLOOR,
            targets=(Target(against=FLOOR, at_most=2),),
            unit="rate",
        ),
        Line(
            work=f"verify the audit, {entries:,} entries, each",
            subject=f"{SAYSO}, verify",
            floor=f"{FLOOR}, verify",
            peers=(f"{BARRIER}, verify",),
            targets=(
                Target(against=f"{FLOOR}, verify", at_most=2),
                Target(against=f"{BARRIER}, verify", at_most=0.2),
            ),
        ),
    )
    return Row(contenders=contenders, lines=lines)


def _durable_peers(scale: Scale) -> list[Contender]:
    """Return the raw commit, and each peer's cycle on SQLite."""
    count, folder = scale.count(150), scale.folder

    def barrier() -> AbstractContextManager[Step]:
        return peers.agentbarrier_step(folder, lambda opened: opened.cycle)

    return [
        _raw(scale),
        Contender(
            name=HOLDPOINT_FULL,
            measure=timed(lambda: peers.holdpoint_file_cycle(folder, "FULL"), count=count),
        ),
        Contender(
            name=HOLDPOINT, measure=timed(lambda: peers.holdpoint_file_cycle(folder, "NORMAL"), count=count)
        ),
        Contender(name=BARRIER, measure=timed(barrier, count=count)),
    ]


def _raw(scale: Scale) -> Contender:
    return Contender(name=RAW, measure=timed(lambda: floors.raw_commit(scale.folder), count=scale.count(300)))


def _judge(doors: subject.Doors) -> Step:
    return doors.judge


def _cycle(doors: subject.Doors) -> Step:
    return doors.cycle


def _append(doors: subject.Doors) -> Step:
    return doors.append


def _deep(size: int, doors: subject.Doors) -> Step:
    middle = doors.middle(size)
    return lambda: doors.page(middle)


def _each(measure: Measure, units: int) -> Measure:
    """Return a measure of one unit, given one of so many."""
    return lambda: measure() / units


ROWS: dict[str, RowMaker] = {
    "judge": judge,
    "memory": memory,
    "durable": durable,
    "crowd": crowd,
    "page": page,
    "due": due,
    "waiters": waiters,
    "size": size,
    "bell": bell,
    "audit": audit,
}

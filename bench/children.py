"""What runs in a process of its own: waiting agents whose memory is weighed, and the far end of a bell.

`python -m bench.children waiters floor FOLDER 10000` prints one JSON line. `listen` reads nothing and
prints an id, then the instant it was woken, again and again. Instants are `perf_counter_ns`,
which all processes of a machine share on Linux.
"""

import asyncio
import gc
import heapq
import json
import os
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench import floors, subject

MEMORY = Path("/proc/self/statm")


def resident() -> int:
    """Return the bytes this process holds in memory."""
    gc.collect()
    return int(MEMORY.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def say(text: str) -> None:
    """Write a line to whoever started this process."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


async def floor_waiters(count: int) -> dict[str, float]:
    """Weigh tasks that wait for a future each, with one heap of deadlines for all."""
    loop = asyncio.get_running_loop()
    deadlines: list[tuple[float, int]] = []
    before = resident()
    futures = [loop.create_future() for _ in range(count)]

    async def wait(number: int) -> None:
        heapq.heappush(deadlines, (loop.time() + 300, number))
        await futures[number]

    tasks = [asyncio.create_task(wait(number)) for number in range(count)]
    await asyncio.sleep(0)
    after = resident()
    start = time.perf_counter()
    for future in futures:
        future.set_result(None)
    await asyncio.gather(*tasks)
    return {"bytes": (after - before) / count, "wake": time.perf_counter() - start}


def floor_listen(path: Path, cycles: int) -> None:
    """Open a request, wait for a datagram, claim it, say when; complete it."""
    floor = floors.FileFloor(path)
    bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    bell.bind(str(path.with_suffix(".bell")))
    for number in range(cycles):
        named, write = floor.opened(number, 0)
        floor.commit(write)
        say(named)
        bell.recv(100)
        floor.commit(floor.claimed(named))
        say(str(time.perf_counter_ns()))
        floor.commit(floor.completed(named))
    floor.close()


def main(arguments: Sequence[str]) -> None:
    """Do what the first two arguments name."""
    match list(arguments):
        case ["waiters", "floor", _, count]:
            say(json.dumps(asyncio.run(floor_waiters(int(count)))))
        case ["waiters", "sayso", folder, count]:
            say(json.dumps(asyncio.run(subject.waiters(Path(folder), int(count), resident))))
        case ["listen", "floor", path, cycles]:
            floor_listen(Path(path), int(cycles))
        case ["listen", "sayso", path, cycles]:
            subject.listen(Path(path), int(cycles), say)
        case _:
            raise SystemExit(f"unknown child: {' '.join(arguments)}")


if __name__ == "__main__":
    main(sys.argv[1:])

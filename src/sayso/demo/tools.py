"""The travel agent's tools: real ones, with real effects on a small SQLite file.

They know nothing of approvals. A fare is checked against the table when it is booked, so an
agent cannot make a dear fare look cheap to get it past a person.
"""

import csv
import secrets
import sqlite3
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import cast

from sayso.actions import Json

CABINS = ("economy", "premium economy", "business")
_MINOR = 100
_LETTERS = "ACDEFGHJKLMNPQRTUVWXY"

_FARES = """
CREATE TABLE IF NOT EXISTS fares (
    flight TEXT NOT NULL, origin TEXT NOT NULL, destination TEXT NOT NULL, date TEXT NOT NULL,
    departs TEXT NOT NULL, cabin TEXT NOT NULL, price_minor INTEGER NOT NULL, currency TEXT NOT NULL,
    refundable INTEGER NOT NULL, seats INTEGER NOT NULL CHECK (seats >= 0),
    PRIMARY KEY (flight, date, cabin, refundable)
)
"""
_BOOKINGS = """
CREATE TABLE IF NOT EXISTS bookings (
    reference TEXT PRIMARY KEY, flight TEXT NOT NULL, date TEXT NOT NULL, cabin TEXT NOT NULL,
    price_minor INTEGER NOT NULL, currency TEXT NOT NULL, refundable INTEGER NOT NULL,
    passenger TEXT NOT NULL, cancelled INTEGER NOT NULL DEFAULT 0
)
"""


class ToolFailed(Exception):  # noqa: N818 - what happened, in the words the agent reads
    """A tool did not do what was asked; nothing was changed. The text is meant for the agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool as the agent and its model know it.

    Args:
        name: Its name, as policy lists it.
        description: What it does, for the model.
        parameters: The JSON Schema of its arguments.
        run: Does it.
    """

    name: str
    description: str
    parameters: Mapping[str, Json]
    run: Callable[[Mapping[str, Json]], Json]

    def fault(self, args: Mapping[str, Json]) -> str:
        """Return what is wrong with arguments, or nothing."""
        from jsonschema import Draft202012Validator  # noqa: PLC0415 - slow to import, and only calls need it

        checker = Draft202012Validator(cast("dict[str, object]", self.parameters))
        faults = checker.iter_errors(args)  # pyright: ignore[reportUnknownMemberType] - jsonschema's own types
        return "; ".join(fault.message for fault in faults)


class Travel:
    """Flights that can be searched and booked, kept in one SQLite file.

    Args:
        path: The file; made from the fares that ship with the demo on first use.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._transaction() as connection:
            connection.execute(_FARES)
            connection.execute(_BOOKINGS)
            if connection.execute("SELECT count(*) FROM fares").fetchone() == (0,):
                connection.executemany("INSERT INTO fares VALUES (?,?,?,?,?,?,?,?,?,?)", _fares())

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools an agent may propose to call."""
        return (
            Tool(
                name="search_flights",
                description="Find fares that still have seats, cheapest first.",
                parameters=_object(
                    {"origin": _TEXT, "destination": _TEXT, "earliest": _DATE, "latest": _DATE},
                    {"cabin": {"enum": list(CABINS)}, "max_price": {"type": "number"}},
                ),
                run=self.search_flights,
            ),
            Tool(
                name="book_flight",
                description="Book one seat of a fare, exactly as search_flights returned it.",
                parameters=_object(
                    {
                        "flight": _TEXT,
                        "date": _DATE,
                        "cabin": {"enum": list(CABINS)},
                        "price": {"type": "number"},
                        "currency": _TEXT,
                        "refundable": {"type": "boolean"},
                        "passenger": _TEXT,
                    }
                ),
                run=self.book_flight,
            ),
            Tool(
                name="cancel_booking",
                description="Cancel a booking by its reference. A refundable fare is refunded.",
                parameters=_object({"reference": _TEXT}),
                run=self.cancel_booking,
            ),
        )

    def search_flights(self, args: Mapping[str, Json]) -> Json:
        """Return the fares that fit, cheapest first."""
        query = (
            "SELECT flight, origin, destination, date, departs, cabin, price_minor, currency, refundable,"
            " seats FROM fares WHERE origin = :origin AND destination = :destination"
            " AND date BETWEEN :earliest AND :latest AND seats > 0"
            " AND (:cabin IS NULL OR cabin = :cabin) AND (:limit IS NULL OR price_minor <= :limit)"
            " ORDER BY price_minor, date"
        )
        most = args.get("max_price")
        wanted = {name: args.get(name) for name in ("origin", "destination", "earliest", "latest", "cabin")}
        wanted["limit"] = _minor(most) if isinstance(most, int | float) else None
        with self._transaction() as connection:
            rows = connection.execute(query, wanted).fetchall()
        return [
            {
                "flight": row[0],
                "origin": row[1],
                "destination": row[2],
                "date": row[3],
                "departs": row[4],
                "cabin": row[5],
                "price": _major(row[6]),
                "currency": row[7],
                "refundable": bool(row[8]),
                "seats": row[9],
            }
            for row in rows
        ]

    def book_flight(self, args: Mapping[str, Json]) -> Json:
        """Take one seat and write the booking, both or neither.

        Raises:
            ToolFailed: There is no such fare, it costs something else, or it is sold out.
        """
        fare = (args["flight"], args["date"], args["cabin"], args["refundable"])
        named = f"{args['flight']} on {args['date']}, {args['cabin']}"
        offered = f"{args['currency']} {args['price']}"
        with self._transaction() as connection:
            row = connection.execute(
                "SELECT price_minor, currency FROM fares"
                " WHERE flight = ? AND date = ? AND cabin = ? AND refundable = ?",
                fare,
            ).fetchone()
            if row is None:
                raise ToolFailed(f"there is no such fare: {named}")
            if row != (_minor(cast("float", args["price"])), args["currency"]):
                raise ToolFailed(f"the fare of {named} is {row[1]} {_major(row[0])}, not {offered}")
            taken = connection.execute(
                "UPDATE fares SET seats = seats - 1"
                " WHERE flight = ? AND date = ? AND cabin = ? AND refundable = ? AND seats > 0",
                fare,
            )
            if taken.rowcount != 1:
                raise ToolFailed(f"{named}, is sold out")
            reference = "".join(secrets.choice(_LETTERS) for _ in range(6))
            connection.execute(
                "INSERT INTO bookings VALUES (?,?,?,?,?,?,?,?,0)",
                (reference, *fare[:3], row[0], row[1], fare[3], args["passenger"]),
            )
        return {"reference": reference, **args}

    def cancel_booking(self, args: Mapping[str, Json]) -> Json:
        """Give the seat back; the fare's own terms say whether the money comes back.

        Raises:
            ToolFailed: There is no such booking, or it was cancelled already.
        """
        reference = args["reference"]
        with self._transaction() as connection:
            row = connection.execute(
                "UPDATE bookings SET cancelled = 1 WHERE reference = ? AND cancelled = 0"
                " RETURNING flight, date, cabin, refundable, price_minor, currency",
                (reference,),
            ).fetchone()
            if row is None:
                raise ToolFailed(f"there is no booking `{reference}` to cancel")
            connection.execute(
                "UPDATE fares SET seats = seats + 1"
                " WHERE flight = ? AND date = ? AND cabin = ? AND refundable = ?",
                row[:4],
            )
        refund = _major(row[4]) if row[3] else 0
        return {"cancelled": reference, "refund": refund, "currency": row[5]}

    def bookings(self) -> list[str]:
        """Return a line for every booking that stands."""
        with self._transaction() as connection:
            rows = connection.execute(
                "SELECT reference, flight, date, cabin, currency, price_minor, refundable FROM bookings"
                " WHERE cancelled = 0 ORDER BY rowid"
            ).fetchall()
        return [
            f"{row[0]}  {row[1]}, {row[2]}, {row[3]}, {row[4]} {row[5] / _MINOR:,.2f},"
            f" {'refundable' if row[6] else 'non-refundable'}"
            for row in rows
        ]

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        """Open the file for one transaction; each thread gets a connection of its own."""
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")


_TEXT: Mapping[str, Json] = {"type": "string", "minLength": 1}
_DATE: Mapping[str, Json] = {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}


def _object(needed: Mapping[str, Json], optional: Mapping[str, Json] | None = None) -> Mapping[str, Json]:
    return {
        "type": "object",
        "properties": {**needed, **(optional or {})},
        "required": list(needed),
        "additionalProperties": False,
    }


def _fares() -> list[tuple[object, ...]]:
    """Return the fares that ship with the demo, as rows."""
    table = files("sayso.demo").joinpath("flights.csv").read_text("utf-8")
    return [
        (
            row["flight"],
            row["origin"],
            row["destination"],
            row["date"],
            row["departs"],
            row["cabin"],
            _minor(float(row["price"])),
            row["currency"],
            row["refundable"] == "true",
            int(row["seats"]),
        )
        for row in csv.DictReader(table.splitlines())
    ]


def _minor(price: float) -> int:
    return round(price * _MINOR)


def _major(minor: int) -> int | float:
    """Return a price as JSON writes it best: whole where it is whole."""
    return minor // _MINOR if minor % _MINOR == 0 else minor / _MINOR

"""The scripted model: a small planner that needs no key and always thinks alike.

It is a function of the messages it gets and of nothing else. It makes the mistake of the
story, taking a business fare for an economy wish, and then lives with what people say.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

from sayso.actions import Json
from sayso.demo.models import Call, Message, Reply
from sayso.demo.tools import CABINS

_SURE = 0.91
_MOST_REFUSALS = 2
_STOP = re.compile(
    r"\b(nothing|stop|wait|cancel|hold off|call me|no trip|(do not|don't|never) book)\b", re.IGNORECASE
)
_FLIGHT = re.compile(r"\b([A-Z][A-Z0-9]) ?(\d{2,4})\b")
_PRICE = re.compile(r"(?:\$|USD )\s?(\d[\d,]*)")
_REASON = re.compile(r"with reason: (.*); it was not run", re.DOTALL)

Fare = Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a fare must be, as far as words say it.

    Args:
        origin: The airport to leave from.
        destination: The airport to fly to.
        cabin: The cabin.
        limit: The most it may cost, in US dollars.
        flight: One flight asked for by name, or empty.
    """

    origin: str
    destination: str
    cabin: str
    limit: int
    flight: str = ""


class ScriptedModel:
    """Plays the agent of the story, deterministically."""

    name = "scripted"

    def reply(self, messages: Sequence[Message]) -> Reply:
        """Return what comes next, given everything said so far."""
        last = messages[-1]
        wish = _wish(next(message.text for message in messages if message.role == "user"))
        if last.role == "user":
            text = "I will look for fares around 14 March; the dates are flexible."
            return _calling(messages, text, "search_flights", _search(wish))
        if last.call and last.call.tool == "search_flights":
            return self._after_search(messages, wish)
        return self._after_booking(messages, wish)

    def _after_search(self, messages: Sequence[Message], wish: Wish) -> Reply:
        fares = _fares(messages[-1])
        words = _words_so_far(messages)
        if not words:
            return _first_choice(messages, fares, wish)
        fitting = _fitting(fares, _refined(wish, words))
        if fitting is None:
            return Reply(text="No fare fits that, and I booked nothing. Which date or price would suit you?")
        return _booking(messages, f"This one fits: {_named(fitting)}.", fitting)

    def _after_booking(self, messages: Sequence[Message], wish: Wish) -> Reply:
        last = messages[-1]
        match last.status:
            case "done":
                return Reply(text=_booked(last))
            case "responded":
                return self._on_words(messages, wish, last.text)
            case "rejected":
                return self._on_words(messages, wish, _reason(last.text))
            case "expired":
                text = "Nobody approved that booking in time, and silence means no. Nothing was booked; "
                return Reply(text=text + "I can look for an economy fare whenever you want.")
            case _:
                return Reply(text=f"I could not book it: {last.text.rstrip('.')}. Nothing was booked.")

    def _on_words(self, messages: Sequence[Message], wish: Wish, words: str) -> Reply:
        """Do what a person's words ask for, as far as it can be made out."""
        refused = sum(message.status in {"rejected", "responded"} for message in messages)
        if not words:
            return Reply(text="It was turned down, so I booked nothing. Shall I look for economy under $400?")
        if _STOP.search(words) or refused > _MOST_REFUSALS:
            return Reply(text=f"Understood, I booked nothing. I was told: “{words}”")
        refined = _refined(wish, words)
        if messages[-1].status == "responded" and refined == wish and "economy" not in words.lower():
            return Reply(text=f"I asked, and the answer is: “{words}” I booked nothing.")
        text = "I see. I will look again, for " + (
            f"{refined.flight}." if refined.flight else f"{refined.cabin} under ${refined.limit:,}."
        )
        return _calling(messages, text, "search_flights", _search(refined, narrow=True))


def _first_choice(messages: Sequence[Message], fares: Sequence[Fare], wish: Wish) -> Reply:
    """Propose what the story's agent proposed: the dear seat that cannot be given back."""
    dear = [fare for fare in fares if fare["cabin"] == "business" and not fare["refundable"]]
    if not dear:
        fitting = _fitting(fares, wish)
        if fitting is None:
            return Reply(text="No fare fits, and I booked nothing. Which other dates would suit you?")
        return _booking(messages, f"This one fits: {_named(fitting)}.", fitting)
    fare = max(dear, key=_price)
    text = (
        f"Economy on 14 March is nearly gone. Given premium availability I accept {_named(fare)}: "
        "it is the best seat on the day that was asked for."
    )
    return _booking(messages, text, fare)


def _wish(text: str) -> Wish:
    """Read the traveller's wish."""
    airports = re.findall(r"\b([A-Z]{3})\b", text)
    price = _PRICE.search(text)
    return Wish(
        origin=airports[0],
        destination=airports[1],
        cabin="economy",
        limit=int(price[1].replace(",", "")) if price else 400,
    )


def _refined(wish: Wish, words: str) -> Wish:
    """Return the wish with what a person's words change about it."""
    price, flight = _PRICE.search(words), _FLIGHT.search(words)
    cabin = next((name for name in reversed(CABINS) if name in words.lower()), wish.cabin)
    if re.search(r"\b(no|not|never)\b[^.]*\b" + cabin, words.lower()):
        cabin = wish.cabin
    return replace(
        wish,
        cabin=cabin,
        limit=int(price[1].replace(",", "")) if price else wish.limit,
        flight=f"{flight[1]} {flight[2]}" if flight else "",
    )


def _search(wish: Wish, *, narrow: bool = False) -> dict[str, Json]:
    args: dict[str, Json] = {
        "origin": wish.origin,
        "destination": wish.destination,
        "earliest": "2027-03-11",
        "latest": "2027-03-17",
    }
    if narrow:
        args |= {"cabin": wish.cabin, "max_price": wish.limit}
    return args


def _fitting(fares: Sequence[Fare], wish: Wish) -> Fare | None:
    """Return the best fare: one that can be given back, else the cheapest."""
    fit = [
        fare
        for fare in fares
        if fare["cabin"] == wish.cabin and _price(fare) < wish.limit and wish.flight in ("", fare["flight"])
    ]
    return min(fit, key=lambda fare: (not fare["refundable"], _price(fare)), default=None)


def _calling(messages: Sequence[Message], text: str, tool: str, args: Mapping[str, Json]) -> Reply:
    number = 1 + sum(len(message.reply.calls) for message in messages)
    return Reply(text=text, calls=(Call(id=f"call_{number}", tool=tool, args=args, confidence=_SURE),))


def _booking(messages: Sequence[Message], text: str, fare: Fare) -> Reply:
    names = ("flight", "date", "cabin", "price", "currency", "refundable")
    args = {name: fare[name] for name in names} | {"passenger": "Sarah Lindqvist"}
    return _calling(messages, text, "book_flight", args)


def _fares(message: Message) -> list[Fare]:
    return cast("list[Fare]", json.loads(message.text)["result"]) if message.status == "done" else []


def _words_so_far(messages: Sequence[Message]) -> str:
    """Return the last words a person gave, whether as a reason or as an answer."""
    for message in reversed(messages):
        if message.status == "rejected":
            return _reason(message.text)
        if message.status == "responded":
            return message.text
    return ""


def _reason(text: str) -> str:
    found = _REASON.search(text)
    return found[1] if found else ""


def _price(fare: Fare) -> float:
    return cast("float", fare["price"])


def _named(fare: Fare) -> str:
    terms: Literal["refundable", "non-refundable"] = "refundable" if fare["refundable"] else "non-refundable"
    return f"{fare['flight']} on {fare['date']}, {fare['cabin']}, {terms}, ${_price(fare):,.0f}"


def _booked(message: Message) -> str:
    """Report what was really booked, which a person may have changed."""
    result = cast("dict[str, Json]", json.loads(message.text))
    booking = cast("Fare", result["result"])
    changed = " The person who approved it changed it first." if "changed_by" in result else ""
    return f"Booked: {_named(booking)}. The reference is {booking['reference']}.{changed}"

"""The demo's own parts: its tools, its policy, its scripted model and the agent between them."""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypedDict, cast

import pytest

from sayso import Action, Outcome, Policy, Reason, Status
from sayso.actions import Json
from sayso.approvals import DecisionKind, Effect, ProofKind, Silence
from sayso.demo.agent import Ended, Said
from sayso.demo.models import LangChainModel, Message, Reply
from sayso.demo.scene import REQUEST, TRAVELLER, Scene, Stopped, policy_text
from sayso.demo.script import ScriptedModel
from sayso.demo.tools import ToolFailed, Travel
from sayso.errors import MissingExtra, NotPermitted, SaysoError
from sayso.presentation import Presentation

DEAR: dict[str, Json] = {
    "flight": "UA 212",
    "date": "2027-03-14",
    "cabin": "business",
    "price": 1847,
    "currency": "USD",
    "refundable": False,
    "passenger": "Sarah Lindqvist",
}
FITTING: dict[str, Json] = DEAR | {
    "flight": "AS 1042",
    "date": "2027-03-13",
    "cabin": "economy",
    "price": 312,
    "refundable": True,
}
LAST_SEAT: dict[str, Json] = FITTING | {
    "flight": "B6 1324",
    "date": "2027-03-15",
    "price": 219,
    "refundable": False,
}
WEEK: dict[str, Json] = {
    "origin": "SFO",
    "destination": "JFK",
    "earliest": "2027-03-11",
    "latest": "2027-03-17",
}


@pytest.fixture
def travel(tmp_path: Path) -> Travel:
    return Travel(tmp_path / "travel.db")


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(folder=tmp_path, store="", window=300, model="")
    yield scene
    scene.cancel()
    scene.close()


class Fare(TypedDict):
    """A fare as the search returns it."""

    flight: str
    date: str
    cabin: str
    price: float
    refundable: bool
    seats: int


def found(travel: Travel, **wish: Json) -> list[Fare]:
    """Return what a search over the whole week finds."""
    return cast("list[Fare]", travel.search_flights(WEEK | wish))


def seats(travel: Travel, args: dict[str, Json]) -> int:
    """Return how many seats the search still offers of a fare."""
    wanted = (args["flight"], args["date"], args["cabin"], args["refundable"])
    same = (each for each in found(travel) if wanted == fare_key(each))
    return sum(each["seats"] for each in same)


def fare_key(fare: Fare) -> tuple[str, str, str, bool]:
    """Return what tells one fare from another."""
    return fare["flight"], fare["date"], fare["cabin"], fare["refundable"]


def reference(booked: Json) -> str:
    """Return the reference of a booking."""
    return cast("dict[str, str]", booked)["reference"]


class TestTheTools:
    def test_a_booking_takes_one_seat_and_is_written(self, travel: Travel) -> None:
        before = seats(travel, DEAR)
        booked = reference(travel.book_flight(DEAR))
        assert seats(travel, DEAR) == before - 1
        assert [line.split()[0] for line in travel.bookings()] == [booked]

    def test_the_last_seat_is_sold_once(self, travel: Travel) -> None:
        travel.book_flight(LAST_SEAT)
        with pytest.raises(ToolFailed, match="sold out"):
            travel.book_flight(LAST_SEAT)
        assert len(travel.bookings()) == 1

    def test_a_fare_is_not_sold_under_another_price(self, travel: Travel) -> None:
        with pytest.raises(ToolFailed, match="is USD 1847, not USD 399"):
            travel.book_flight(DEAR | {"price": 399})
        assert travel.bookings() == []

    def test_a_dear_fare_cannot_be_booked_by_calling_it_refundable(self, travel: Travel) -> None:
        with pytest.raises(ToolFailed, match="no such fare"):
            travel.book_flight(DEAR | {"refundable": True})

    @pytest.mark.parametrize(("fare", "refund"), [(DEAR, 0), (FITTING, 312)])
    def test_cancelling_gives_the_seat_back_and_money_only_where_the_fare_says_so(
        self, travel: Travel, fare: dict[str, Json], refund: int
    ) -> None:
        before = seats(travel, fare)
        booked = reference(travel.book_flight(fare))
        cancelled = travel.cancel_booking({"reference": booked})
        assert cancelled == {"cancelled": booked, "refund": refund, "currency": "USD"}
        assert (seats(travel, fare), travel.bookings()) == (before, [])
        with pytest.raises(ToolFailed, match="no booking"):
            travel.cancel_booking({"reference": booked})

    def test_the_search_finds_only_what_fits_cheapest_first(self, travel: Travel) -> None:
        fares = found(travel, cabin="economy", max_price=300)
        prices = [fare["price"] for fare in fares]
        assert prices == sorted(prices)
        assert max(prices) <= 300
        assert {fare["cabin"] for fare in fares} == {"economy"}

    def test_arguments_that_do_not_fit_are_named(self, travel: Travel) -> None:
        search = travel.tools()[0]
        assert "'latest' is a required property" in search.fault({name: WEEK[name] for name in ("origin",)})
        assert search.fault(WEEK) == ""


class TestThePolicy:
    policy = Policy.from_text(policy_text(300))

    def judged(self, tool: str, args: dict[str, Json], confidence: float = 0.9) -> Outcome:
        return self.policy.judge(Action(tool=tool, args=args, thread="t", confidence=confidence)).outcome

    def test_a_search_never_asks(self) -> None:
        assert self.judged("search_flights", WEEK) is Outcome.ALLOW

    def test_the_dear_fare_asks_for_a_typed_code_within_five_minutes_and_silence_denies(self) -> None:
        verdict = self.policy.judge(Action(tool="book_flight", args=DEAR, thread="t", confidence=0.9))
        assert verdict.outcome is Outcome.ASK
        assert {Reason.IRREVERSIBLE, Reason.HIGH_COST} <= set(verdict.reasons)
        assert "USD 1,847.00" in verdict.why
        terms = verdict.terms
        assert terms is not None
        assert (terms.effect, terms.silence, terms.window) == (Effect.IRREVERSIBLE, Silence.DENY, 300)
        assert terms.proof.kind is ProofKind.CODE
        assert set(terms.decisions) == set(DecisionKind)

    @pytest.mark.parametrize(
        ("changes", "outcome"),
        [
            ({}, Outcome.ALLOW),
            ({"price": 400}, Outcome.ALLOW),
            ({"price": 400.01}, Outcome.ASK),
            ({"refundable": False}, Outcome.ASK),
        ],
    )
    def test_only_a_cheap_refundable_fare_needs_nobody(
        self, changes: dict[str, Json], outcome: Outcome
    ) -> None:
        assert self.judged("book_flight", FITTING | changes) is outcome

    def test_an_unsure_agent_may_not_even_ask_for_a_booking(self) -> None:
        assert self.judged("book_flight", FITTING, confidence=0.5) is Outcome.DENY

    def test_cancelling_always_asks(self) -> None:
        assert self.judged("cancel_booking", {"reference": "ABCDEF"}) is Outcome.ASK

    def test_every_tool_has_a_rule_and_every_rule_a_tool(self, travel: Travel) -> None:
        lint = self.policy.lint([tool.name for tool in travel.tools()])
        assert (lint.tools_without_rule, lint.rules_without_tool) == ((), ())

    def test_the_window_can_be_shortened(self) -> None:
        verdict = Policy.from_text(policy_text(3)).judge(Action(tool="book_flight", args=DEAR, thread="t"))
        assert verdict.terms is not None
        assert verdict.terms.window == 3


class TestTheScriptedModel:
    def after(self, travel: Travel, status: str, text: str) -> Reply:
        """Return what it does after its first booking ended like this."""
        messages = [Message(role="user", text=REQUEST)]
        model = ScriptedModel()
        fares = json.dumps({"result": travel.search_flights(WEEK)})
        for ended, told in (("done", fares), (status, text)):
            reply = model.reply(messages)
            messages.append(Message(role="agent", text=reply.text, reply=reply))
            messages.append(Message(role="tool", text=told, call=reply.calls[0], status=ended))
        return model.reply(messages)

    def test_it_first_proposes_the_dear_fare_it_should_not_take(self, travel: Travel) -> None:
        model, messages = ScriptedModel(), [Message(role="user", text=REQUEST)]
        search = model.reply(messages)
        fares = json.dumps({"result": travel.search_flights(WEEK)})
        messages.append(Message(role="agent", text=search.text, reply=search))
        messages.append(Message(role="tool", text=fares, call=search.calls[0], status="done"))
        booking = model.reply(messages)
        assert (search.calls[0].tool, booking.calls[0].tool) == ("search_flights", "book_flight")
        assert "premium availability" in booking.text
        assert dict(booking.calls[0].args) == DEAR

    def test_after_a_reason_it_looks_for_what_was_asked(self, travel: Travel) -> None:
        told = "ann rejected `book_flight` with reason: economy, please; it was not run; do not retry it"
        reply = self.after(travel, "rejected", told)
        assert reply.calls[0].tool == "search_flights"
        assert reply.calls[0].args["cabin"] == "economy"
        assert reply.calls[0].args["max_price"] == 400

    @pytest.mark.parametrize("reason", ["book nothing today", "Stop, I will call you", "do not book this"])
    def test_a_reason_to_stop_stops_it(self, travel: Travel, reason: str) -> None:
        told = f"ann rejected `book_flight` with reason: {reason}; it was not run; do not retry it"
        reply = self.after(travel, "rejected", told)
        assert reply.calls == ()
        assert reason in reply.text

    def test_without_a_reason_it_asks_the_traveller(self, travel: Travel) -> None:
        reply = self.after(travel, "rejected", "ann rejected `book_flight`; it was not run; do not retry it")
        assert reply.calls == ()
        assert reply.text.endswith("?")

    def test_words_in_place_of_a_result_are_used(self, travel: Travel) -> None:
        searching = self.after(travel, "responded", "Take AS 1042, economy, under $350.")
        assert (searching.calls[0].args["cabin"], searching.calls[0].args["max_price"]) == ("economy", 350)
        quoting = self.after(travel, "responded", "Her assistant decides next week.")
        assert quoting.calls == ()
        assert "Her assistant decides next week." in quoting.text

    def test_after_silence_it_explains_and_proposes_nothing(self, travel: Travel) -> None:
        reply = self.after(travel, "expired", "nobody approved `book_flight` within 300 s")
        assert reply.calls == ()
        assert "silence means no" in reply.text

    def test_it_reports_what_was_really_booked(self, travel: Travel) -> None:
        booked = {"result": FITTING | {"reference": "QWERTY"}, "changed_by": "ann"}
        reply = self.after(travel, "done", json.dumps(booked))
        assert "AS 1042 on 2027-03-13, economy, refundable, $312" in reply.text
        assert "QWERTY" in reply.text
        assert "changed it first" in reply.text


class TestTheAgent:
    def play(self, scene: Scene, decide: Callable[[Scene, Presentation], object]) -> list[Said | Ended]:
        """Run the scene, deciding every approval, and return what the agent did."""
        happened: list[Said | Ended] = []
        for moment in scene.run():
            if isinstance(moment, Stopped):
                decide(scene, scene.inbox.show(moment.approval_id))
            else:
                happened.append(moment)
        return happened

    def ended(self, happened: list[Said | Ended]) -> list[tuple[str, str, bool]]:
        return [(each.call.tool, each.status, each.asked) for each in happened if isinstance(each, Ended)]

    def test_an_approved_booking_runs_once_and_a_search_asks_nobody(self, scene: Scene) -> None:
        happened = self.play(
            scene,
            lambda s, card: s.inbox.approve(card, s.person, proof=s.inbox.challenge(card, s.person)),
        )
        assert self.ended(happened) == [("search_flights", "done", False), ("book_flight", "done", True)]
        assert len(scene.travel.bookings()) == 1
        assert "UA 212" in scene.answer

    def test_an_edit_books_what_the_person_wrote(self, scene: Scene) -> None:
        def edit(s: Scene, card: Presentation) -> object:
            return s.inbox.edit(card, s.person, FITTING, proof=s.inbox.challenge(card, s.person))

        self.play(scene, edit)
        assert [line.split("  ")[1] for line in scene.travel.bookings()] == [
            "AS 1042, 2027-03-13, economy, USD 312.00, refundable"
        ]
        assert "AS 1042" in scene.answer

    def test_after_a_reject_the_agent_books_the_fitting_fare_alone(self, scene: Scene) -> None:
        happened = self.play(scene, lambda s, card: s.inbox.reject(card, s.person, "economy only"))
        assert self.ended(happened)[1:] == [
            ("book_flight", "rejected", True),
            ("search_flights", "done", False),
            ("book_flight", "done", False),
        ]
        assert "AS 1042" in scene.travel.bookings()[0]

    def test_a_respond_reaches_the_model_word_for_word(self, scene: Scene) -> None:
        happened = self.play(scene, lambda s, card: s.inbox.respond(card, s.person, "Ask me on Monday."))
        assert [each.text for each in happened if isinstance(each, Ended)][1] == "Ask me on Monday."
        assert scene.travel.bookings() == []

    def test_an_edit_to_a_fare_that_does_not_exist_fails_and_books_nothing(self, scene: Scene) -> None:
        def edit(s: Scene, card: Presentation) -> object:
            wrong = FITTING | {"price": 200}
            return s.inbox.edit(card, s.person, wrong, proof=s.inbox.challenge(card, s.person))

        happened = self.play(scene, edit)
        assert self.ended(happened)[1] == ("book_flight", "failed", True)
        assert scene.travel.bookings() == []
        assert [each.status for each in scene.inbox.page(status=None).approvals] == [Status.FAILED]

    def test_a_cancelled_run_is_withdrawn_and_books_nothing(self, scene: Scene) -> None:
        with pytest.raises(SaysoError, match="withdrawn"):
            self.play(scene, lambda s, _: s.cancel())
        assert [each.status for each in scene.inbox.page(status=None).approvals] == [Status.WITHDRAWN]
        assert scene.travel.bookings() == []

    def test_the_traveller_cannot_approve_her_own_booking(self, scene: Scene) -> None:
        def approve(s: Scene, card: Presentation) -> None:
            with pytest.raises(NotPermitted):
                s.inbox.challenge(card, replace(s.person, id=TRAVELLER))
            s.inbox.reject(card, s.person, "book nothing")

        self.play(scene, approve)

    def test_two_runs_on_one_store_do_not_share_approvals(self, tmp_path: Path) -> None:
        for number in (1, 2):
            folder = tmp_path / str(number)
            folder.mkdir()
            scene = Scene(folder=folder, store=str(tmp_path / "shared.db"), window=300, model="")
            self.play(scene, lambda s, card: s.inbox.reject(card, s.person, "book nothing"))
            assert len(scene.inbox.page(status=None).approvals) == number
            scene.close()


def test_a_named_model_without_langchain_names_the_line_that_installs_it(
    travel: Travel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "langchain", None)
    monkeypatch.delitem(sys.modules, "langchain.chat_models", raising=False)
    with pytest.raises(MissingExtra, match=r'pip install "sayso\[langchain\]"'):
        LangChainModel("openai:some-model", travel.tools())

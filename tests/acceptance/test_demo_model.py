"""The demo with a model that LangChain names, over the provider's own wire format.

The provider is a small server on this machine that answers as OpenAI's does.
"""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar, cast

import pytest

from sayso.actions import Json
from sayso.demo.agent import Ended
from sayso.demo.scene import Scene, Stopped

pytest.importorskip("langchain", reason="LangChain is an extra: pip install 'sayso[langchain]'")
pytest.importorskip("langchain_openai", reason="LangChain is an extra: pip install 'sayso[langchain]'")

SEARCH = {"origin": "SFO", "destination": "JFK", "earliest": "2027-03-13", "latest": "2027-03-15"}
BOOKING = {
    "flight": "UA 212",
    "date": "2027-03-14",
    "cabin": "business",
    "price": 1847,
    "currency": "USD",
    "refundable": False,
    "passenger": "Sarah Lindqvist",
}


class Provider(BaseHTTPRequestHandler):
    """Proposes a search, then the dear booking, then says what it was told."""

    asked: ClassVar[list[dict[str, Json]]] = []

    def do_POST(self) -> None:
        """Answer one request for a completion."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        Provider.asked.append(body)
        messages = body["messages"]
        turn = sum(message["role"] == "assistant" for message in messages)
        if turn < 2:
            name, args = (("search_flights", SEARCH), ("book_flight", BOOKING))[turn]
            function = {"name": name, "arguments": json.dumps(args)}
            call = {"id": f"call-{turn}", "type": "function", "function": function}
            message = {"role": "assistant", "content": "Let me see.", "tool_calls": [call]}
        else:
            message = {"role": "assistant", "content": f"I was told: {messages[-1]['content']}"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        answer = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        data = json.dumps(answer | {"usage": usage}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name it overrides
        """Say nothing."""


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Json]]]:
    server = HTTPServer(("127.0.0.1", 0), Provider)
    Provider.asked.clear()
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
    yield Provider.asked
    server.shutdown()
    server.server_close()


def test_a_real_model_passes_the_same_gate(tmp_path: Path, provider: list[dict[str, Json]]) -> None:
    scene = Scene(folder=tmp_path, store="", window=300, model="openai:any-model")
    ended: list[tuple[str, str]] = []
    for moment in scene.run():
        if isinstance(moment, Stopped):
            scene.inbox.reject(scene.inbox.show(moment.approval_id), scene.person, "too dear")
        if isinstance(moment, Ended):
            ended.append((moment.call.tool, moment.status))
    scene.close()
    assert ended == [("search_flights", "done"), ("book_flight", "rejected")]
    assert "with reason: too dear" in scene.answer
    assert scene.travel.bookings() == []
    told = cast("list[dict[str, Json]]", provider[-1]["messages"])[-1]
    assert (told["role"], told["tool_call_id"]) == ("tool", "call-1")
    tools = cast("list[dict[str, dict[str, Json]]]", provider[0]["tools"])
    assert [tool["function"]["name"] for tool in tools] == ["search_flights", "book_flight", "cancel_booking"]

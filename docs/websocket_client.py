"""Asks Hermes a question in a new conversation: python websocket_client.py QUESTION [URL]"""

import asyncio
import json
import os
import random
import sys
from contextlib import suppress

import websockets

REFUSED = """HTTP 403: HERMES_TOKEN is wrong, expired or revoked, or the address is wrong.
Make a token: .venv/bin/python manage.py apitoken create USERNAME"""


class Asking:
    socket, seq, end = None, 0, None

    async def ask(self, question, url, **options):
        """Streams the answer to stdout. After a drop the same commands go out again."""
        once = os.urandom(16).hex()  # one id over every try: the question is asked once
        while self.end is None:
            try:
                async with websockets.connect(url, **options) as self.socket:
                    await self.call("hello", protocol="hermes.v1")
                    new = await self.call("message.send", clientMessageId=once, content=question)
                    await self.call("session.subscribe", sessionId=new["sessionId"], after=self.seq)
                    while self.end is None:
                        await self.receive()
            except (OSError, websockets.WebSocketException) as exc:
                "HTTP 403" in str(exc) and sys.exit(REFUSED)
                self.socket or sys.exit(f"Cannot connect to {url}: {exc}")
                print(f"[{exc}; trying again]", file=sys.stderr)
                await asyncio.sleep(1 + random.random())
        sys.exit(self.end.get("message") or print())

    async def call(self, command, **body):
        await self.socket.send(json.dumps({"id": command, "type": command, **body}))
        while (frame := await self.receive()).get("re") != command:
            pass
        return frame["result"] if frame["ok"] else sys.exit(frame["error"]["message"])

    async def receive(self):
        frame, events = json.loads(await self.socket.recv()), []
        if frame.get("type") == "snapshot":  # too late for a replay: how things stand now
            answers = [row["parts"] for row in frame["messages"] if row["kind"] == "assistant"]
            texts = [part["text"] for parts in answers for part in parts if part["type"] == "text"]
            print("\n[From the start]", *texts)
            self.seq, self.end = frame["seq"], None if frame["running"] else {}
            events = frame["running"]["events"] if frame["running"] else []
        elif frame.get("seq", 0) > self.seq:
            self.seq, events = frame["seq"], [frame["event"]]
            acks = {frame["sessionId"]: self.seq}
            with suppress(websockets.ConnectionClosed):  # what came before the close is still read
                await self.socket.send(json.dumps({"type": "ack", "acks": acks}))
        for event in events:
            if event["type"] == "TEXT_MESSAGE_CONTENT":
                print(event["delta"], end="", flush=True)
            elif event["type"] in {"RUN_FINISHED", "RUN_ERROR"}:
                again = event.get("metadata", {}).get("hermes", {}).get("retrying")
                self.end = print("\n[Interrupted; once more]") if again else event
        return frame


token = os.environ.get("HERMES_TOKEN") or sys.exit("HERMES_TOKEN is not set.")
bearer = {"Authorization": f"Bearer {token}"}
question, url = [*(sys.argv[1:] or sys.exit(__doc__)), "ws://127.0.0.1:8000/ws/v1/"][:2]
asyncio.run(Asking().ask(question, url, subprotocols=["hermes.v1"], additional_headers=bearer))

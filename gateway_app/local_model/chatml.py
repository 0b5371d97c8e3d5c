"""The prompt of SmolLM2, ChatML, as its own template writes it.

Made here and not by llama.cpp's template, for two reasons: answers can stand in it as the tokens
they were generated as, and what people write is never read as a control token, so that nobody can
end their message and begin one of the system's.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from gateway_app.local_model.answers import Token

DEFAULT_SYSTEM: Final = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
"""What the model's template puts before a conversation without a system prompt."""

SPECIALS: Final = "<|im_start|><|im_end|>"


@dataclass(frozen=True, slots=True)
class Message:
    """One message: `role` is system, user, assistant or tool."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class ChatML:
    """`start`, `end`: the tokens of SPECIALS."""

    start: int
    end: int

    def prompt(
        self, messages: Sequence[Message], recall: Callable[[str], Sequence[Token]]
    ) -> list[Token]:
        """The whole prompt, up to where the model's answer begins.

        `recall` gives an assistant's text as tokens. A longer conversation's prompt begins with
        that of a shorter one, and with the answer to it.
        """
        if not messages or messages[0].role != "system":
            messages = [Message("system", DEFAULT_SYSTEM), *messages]
        tokens: list[Token] = []
        for message in messages:
            if message.role == "assistant":
                tokens += [self.start, "assistant\n", *recall(message.text), self.end, "\n"]
            else:
                tokens += [self.start, f"{message.role}\n{message.text}", self.end, "\n"]
        return [*tokens, self.start, "assistant\n"]

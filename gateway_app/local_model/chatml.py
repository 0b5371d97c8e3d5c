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
class Turn:
    """One message: `role` is system, user, assistant or tool."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class ChatML:
    """`start`, `end`: the tokens of SPECIALS."""

    start: int
    end: int

    def prompt(
        self, turns: Sequence[Turn], recall: Callable[[str], Sequence[Token]]
    ) -> list[Token]:
        """The whole prompt, up to where the model's answer begins.

        `recall` gives an assistant's text as tokens. A longer conversation's prompt begins with
        that of a shorter one, and with the answer to it.
        """
        if not turns or turns[0].role != "system":
            turns = [Turn("system", DEFAULT_SYSTEM), *turns]
        tokens: list[Token] = []
        for turn in turns:
            if turn.role == "assistant":
                tokens += [self.start, "assistant\n", *recall(turn.text), self.end, "\n"]
            else:
                tokens += [self.start, f"{turn.role}\n{turn.text}", self.end, "\n"]
        return [*tokens, self.start, "assistant\n"]

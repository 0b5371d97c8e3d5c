"""The prompt of SmolLM2."""

from gateway_app.local_model.chatml import DEFAULT_SYSTEM, ChatML, Message

CHATML = ChatML(start=1, end=2)


def as_text(text: str) -> list[int | str]:
    return [text]


def test_it_writes_what_the_models_own_template_writes():
    messages = [Message("system", "Be kind"), Message("user", "Hi"), Message("assistant", "Ho")]
    prompt = CHATML.prompt([*messages, Message("user", "He")], as_text)
    assert prompt == [
        *(1, "system\nBe kind", 2, "\n"),
        *(1, "user\nHi", 2, "\n"),
        *(1, "assistant\n", "Ho", 2, "\n"),
        *(1, "user\nHe", 2, "\n"),
        *(1, "assistant\n"),
    ]


def test_it_puts_the_templates_system_prompt_before_a_conversation_without_one():
    prompt = CHATML.prompt([Message("user", "Hi")], as_text)
    assert prompt[:4] == [1, f"system\n{DEFAULT_SYSTEM}", 2, "\n"]
    assert CHATML.prompt([], as_text)[:4] == prompt[:4]


def test_it_continues_a_prompt_and_its_answer():
    messages = [Message("system", "Be kind"), Message("user", "Hi")]
    before = CHATML.prompt(messages, as_text)
    after = CHATML.prompt(
        [*messages, Message("assistant", "Ho"), Message("user", "He")], lambda _: [7, 8]
    )
    assert after[: len(before) + 3] == [*before, 7, 8, 2]

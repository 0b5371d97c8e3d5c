"""What the front end takes from others: each package pinned by version and integrity."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Package:
    """One npm package; `files` maps a path in its archive to the kept file's name."""

    name: str
    version: str
    licence: str
    integrity: str
    files: dict[str, str]


LANGUAGES: Final = (
    "bash", "c", "cpp", "csharp", "css", "diff", "dockerfile", "go", "ini", "java", "javascript",
    "json", "kotlin", "lua", "makefile", "markdown", "php", "python", "r", "ruby", "rust", "shell",
    "sql", "swift", "typescript", "xml", "yaml",
)  # fmt: skip
MATHS_FONTS: Final = (
    "AMS-Regular", "Caligraphic-Bold", "Caligraphic-Regular", "Fraktur-Bold", "Fraktur-Regular",
    "Main-Bold", "Main-BoldItalic", "Main-Italic", "Main-Regular", "Math-BoldItalic",
    "Math-Italic", "SansSerif-Bold", "SansSerif-Italic", "SansSerif-Regular", "Script-Regular",
    "Size1-Regular", "Size2-Regular", "Size3-Regular", "Size4-Regular", "Typewriter-Regular",
)  # fmt: skip
CHUNKS: Final = "chunks/mermaid.esm.min"
DIAGRAM_ENTRIES: Final = (
    "mermaid.esm.min.mjs",
    *(
        f"{CHUNKS}/{name}-"
        for name in (
            "dagre",
            "flowDiagram",
            "sequenceDiagram",
            "stateDiagram-v2",
            "classDiagram-v2",
            "erDiagram",
            "ganttDiagram",
            "pieDiagram",
            "pie",
            "gitGraphDiagram",
            "gitGraph",
            "sizeCapture",
            "timeline-definition",
            "journeyDiagram",
        )
    ),
)
"""The kinds of diagram that are kept: 2 MB of 5.5. The others bring a layout engine each."""

DIAGRAMS: Final = Package(
    "mermaid",
    "12.3.0",
    "MIT",
    "sha512-4113TdXeLAsMruJ79OpFL5O8+LTFXhQqZ260rF3tgUmiNAtRm4Uume04I+65PRN6yZ69J4f8rVYWW8zRk65UYw==",
    {"LICENSE": "mermaid/LICENSE"},
)
PACKAGES: Final = (
    Package(
        "markdown-it",
        "15.0.3",
        "MIT",
        "sha512-+Az7Ojz3iRGu8KYMvJ6xVhvrxP3eE+vEtJX75Ow88XBpcQNV/0lGX5ZynIIBftREo4DC2jsveAMDaeltmm8QvQ==",
        {
            "dist/browser/markdown-it.esm.min.mjs": "markdown-it.js",
            "LICENSE": "markdown-it.LICENSE",
        },
    ),
    Package(
        "dompurify",
        "3.5.0",
        "MPL-2.0 OR Apache-2.0",
        "sha512-LYC0ZkE8P1V42JsRYTwMdme/2ET8SpOc5AA2eOFjP/IadvRd2fwiT4TVz5vkfy0XUx12aS2UaRkTnfVPNOv9vw==",
        {"dist/purify.min.js": "purify.js", "LICENSE": "purify.LICENSE"},
    ),
    Package(
        "@fontsource-variable/inter",
        "5.3.0",
        "OFL-1.1",
        "sha512-OupL48va4JNofb97w6NYeF9S7W/kHNKM0Er8Dem5nqi4jeOLrVJDoE8tZEpnMJmtkvNbB1EIPPwHcdkF6b1oUA==",
        {"files/inter-latin-wght-normal.woff2": "inter.woff2", "LICENSE": "inter.LICENSE"},
    ),
    Package(
        "@highlightjs/cdn-assets",
        "11.12.0",
        "BSD-3-Clause",
        "sha512-KvOKXODaiFmId9xaq3xc5xCL66wVLUuOngDbO9B/kewbFTqdGbn2nJxNhN3H5R1cgDTVj6R8vH0zgiNDEGjpDw==",
        {
            "es/core.min.js": "highlight/core.js",
            "LICENSE": "highlight/LICENSE",
            **{f"es/languages/{name}.min.js": f"highlight/{name}.js" for name in LANGUAGES},
        },
    ),
    Package(
        "katex",
        "0.19.1",
        "MIT",
        "sha512-jG8uKntjSEcm2EpQOh0XturpPuuC9r3Sq5HLHdsFdWZT27E672SF19QEi+of0/YeOy15lDgRhKvr5614uRrEfA==",
        {
            "dist/katex.min.js": "katex/katex.js",
            "dist/katex.min.css": "katex/katex.css",
            "LICENSE": "katex/LICENSE",
            **{
                f"dist/fonts/KaTeX_{name}.woff2": f"katex/fonts/KaTeX_{name}.woff2"
                for name in MATHS_FONTS
            },
        },
    ),
    DIAGRAMS,
)

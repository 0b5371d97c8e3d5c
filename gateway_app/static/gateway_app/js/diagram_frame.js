// Inside the frame of diagrams.js: draws what the page sends and sends the picture back. A classic
// script: the frame's origin is opaque, and only the library's modules are served to such.

(async () => {
  const page = new URL(location.href).origin;
  const tell = (id, answer) => parent.postMessage({ id, answer }, page);
  const { library } = document.currentScript.dataset;

  const FIXED = [
    "secure", "securityLevel", "startOnLoad", "maxTextSize", "suppressErrorRendering", "maxEdges",
    "htmlLabels", "flowchart", "class", "state", "themeCSS", "theme", "themeVariables", "fontFamily", "layout", "look",
  ];
  const SETTINGS = {
    startOnLoad: false,
    layout: "dagre",
    look: "classic",
    theme: "base",
    securityLevel: "strict",
    htmlLabels: false,
    flowchart: { htmlLabels: false },
    class: { htmlLabels: false },
    state: { htmlLabels: false },
    suppressErrorRendering: true,
    fontFamily: "ui-sans-serif, system-ui, sans-serif",
    secure: FIXED,
  };

  // The kinds whose modules are kept; see scripts/vendored_packages.py.
  const KINDS = /^(?:flowchart|flowchart-v2|sequence|state|stateDiagram|class|classDiagram|er|gantt|pie|gitGraph|timeline|journey)$/;

  // A picture in a node would be asked for by the library; there is no network here to ask.
  globalThis.Image = undefined;

  /** Markup in a label is text: the library would make elements of it to measure them. */
  function withoutMarkup(source) {
    return source.replace(/(?<!<)<(?!br\s*\/?>)(?=[a-z!?/])/gi, "#lt;");
  }

  let mermaid;
  try {
    ({ default: mermaid } = await import(new URL(library, location.href).href));
  } catch {
    tell("ready", false);
    return;
  }

  /** The page's colours, as the library names them. */
  function themed(dark, colours) {
    return {
      darkMode: dark,
      background: colours.bg,
      primaryColor: colours.bubble,
      primaryTextColor: colours.text,
      primaryBorderColor: colours.accent,
      secondaryColor: colours.inset,
      tertiaryColor: colours.side,
      lineColor: colours["text-3"],
      textColor: colours.text,
      edgeLabelBackground: colours.bg,
      clusterBorder: colours["line-strong"],
      noteBkgColor: colours["wait-soft"],
      noteTextColor: colours.text,
      noteBorderColor: colours["line-strong"],
    };
  }

  async function draw({ id, source, dark, colours }) {
    mermaid.initialize({ ...SETTINGS, themeVariables: themed(dark, colours) });
    if (!KINDS.test(mermaid.detectType(source))) return null;
    const { svg } = await mermaid.render(`diagram-${id}`, withoutMarkup(source));
    const drawing = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
    const [, , width, height] = (drawing.getAttribute("viewBox") ?? "").split(/[\s,]+/).map(Number);
    if (!(width > 0 && height > 0)) return null;
    drawing.setAttribute("width", width);
    drawing.setAttribute("height", height);
    return { svg: new XMLSerializer().serializeToString(drawing), width, height };
  }

  // One after the other: the library keeps what it draws in one place.
  let before = Promise.resolve();
  addEventListener("message", ({ source, data }) => {
    if (source !== parent) return;
    before = before.then(() => draw(data)).then(
      (answer) => tell(data.id, answer),
      () => tell(data.id, null),
    );
  });
  tell("ready", true);
})();

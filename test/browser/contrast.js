// All text of a page whose contrast is less than AA of WCAG 2.2 asks for, 4.5 to 1 (3 to 1 where it is large), each
// pair of colours once: how it is computed is of "contrast ratio" and "relative luminance" there.
(() => {
  const parse = (text) => {
    const n = text.match(/^rgba?\(([^)]*)\)/)?.[1].split(/[,/ ]+/).map(Number);
    return n ? { r: n[0], g: n[1], b: n[2], a: n[3] ?? 1 } : null;
  };
  const over = (top, below) => {
    const mix = (x, y) => x * top.a + y * (1 - top.a);
    return { r: mix(top.r, below.r), g: mix(top.g, below.g), b: mix(top.b, below.b), a: 1 };
  };
  const luminance = (c) => {
    const part = (v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(c.r) + 0.7152 * part(c.g) + 0.0722 * part(c.b);
  };
  const ratio = (a, b) => {
    const [x, y] = [luminance(a), luminance(b)];
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  };
  // Where an element has a gradient, any of its colours may be behind the text.
  const layers = (e) => {
    const style = getComputedStyle(e);
    const colour = parse(style.backgroundColor);
    const stops = (style.backgroundImage.match(/rgba?\([^)]*\)/g) || []).map(parse);
    return stops.length ? stops.filter((s) => s.a > 0).concat([colour]) : [colour];
  };
  // Both are asked for each text: what holds of an element's parent is known already.
  const kept = (of) => {
    const known = new Map();
    return (e) => {
      if (!known.has(e)) known.set(e, of(e));
      return known.get(e);
    };
  };
  const page = matchMedia("(prefers-color-scheme: dark)").matches ? { r: 18, g: 18, b: 18, a: 1 } : { r: 255, g: 255, b: 255, a: 1 };
  const behind = kept((e) => {
    const below = e.parentElement ? behind(e.parentElement) : [page];
    const all = layers(e).flatMap((layer) => (layer.a === 0 ? below : below.map((b) => over(layer, b))));
    return [...new Map(all.map((c) => [[c.r, c.g, c.b].join(), c])).values()];
  });
  const faded = kept((e) => Number(getComputedStyle(e).opacity) * (e.parentElement ? faded(e.parentElement) : 1));
  const seen = new Map();
  let looked = 0;
  const judge = (e, style, text) => {
    const colour = parse(style.color);
    if (!colour) return void seen.set("no colour " + style.color, text);
    looked++;
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
    for (const back of behind(e)) {
      const got = ratio(over({ ...colour, a: colour.a * faded(e) }, back), back);
      if (got < (large ? 3 : 4.5)) {
        const key = `${style.color} on rgb(${Math.round(back.r)}, ${Math.round(back.g)}, ${Math.round(back.b)})`;
        if (!seen.has(key)) seen.set(key, `${got.toFixed(2)} to 1: "${text.slice(0, 30)}" in ${e.tagName.toLowerCase()}.${e.className}`);
      }
    }
  };
  const visible = (e) => {
    const box = e.getBoundingClientRect();
    return box.width > 1 && box.height > 1 && getComputedStyle(e).visibility === "visible";
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const e = node.parentElement, text = node.textContent.trim();
    if (text && !/^(SCRIPT|STYLE|NOSCRIPT|TITLE|OPTION)$/i.test(e.tagName) && visible(e)) judge(e, getComputedStyle(e), text);
  }
  for (const e of document.body.querySelectorAll("*")) {
    if (!visible(e)) continue;
    for (const part of ["::before", "::after"]) {
      const style = getComputedStyle(e, part);
      if (!/^(none|normal|"")$/.test(style.content)) judge(e, style, part + " " + style.content);
    }
    if (/^(INPUT|SELECT|TEXTAREA|BUTTON)$/.test(e.tagName)) judge(e, getComputedStyle(e), e.value || e.name);
    if (e.placeholder) judge(e, getComputedStyle(e, "::placeholder"), e.placeholder);
  }
  return { looked, found: [...seen].map(([pair, where]) => pair + " is " + where) };
})();

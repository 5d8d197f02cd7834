// Create and update elements. Data from hosts becomes text, never markup.

// Characters that are invisible or change the direction of text. They become escapes, except for line breaks and tabs.
const HIDDEN = /[\p{C}\p{Zl}\p{Zp}\u00a0\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u202f\u205f\u2800\u3164\ufe00-\ufe0d\uffa0]/gu;
const LONGEST = 100_000;

export function visible(value) {
  const text = String(value ?? "");
  const cut = text.length > LONGEST ? `${text.slice(0, LONGEST)}… (${text.length - LONGEST} more characters)` : text;
  return cut.replace(HIDDEN, (character) => {
    if (character === "\n" || character === "\t") return character;
    const code = character.codePointAt(0);
    if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
    return code < 0x10000 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`;
  });
}

// Return an element. `name` may have classes: "div.card.bad". Children are texts, elements, lists of them, or nothing.
export function h(name, attributes, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    // Keys, values and links must stay exact.
    const isExact = key.startsWith("data-") || key === "value" || key === "href";
    element.setAttribute(key, value === true ? "" : isExact ? String(value) : visible(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    element.append(child instanceof Node ? child : document.createTextNode(visible(child)));
  }
  return element;
}

// Make an element equal to another with few changes. Elements that stay keep their focus, scroll and selection.
export function put(target, wanted) {
  const byKey = new Map();
  for (const child of target.childNodes) if (child.dataset?.key) byKey.set(child.dataset.key, child);
  let at = target.firstChild;
  for (const child of [...wanted.childNodes]) {
    const key = child.dataset?.key;
    let match = key ? byKey.get(key) : at;
    if (!key && match?.dataset?.key) match = null;
    if (!match || match.nodeType !== child.nodeType || match.nodeName !== child.nodeName) {
      target.insertBefore(child, at);
      continue;
    }
    if (match === at) at = at.nextSibling;
    else target.insertBefore(match, at);
    if (child.nodeType === Node.TEXT_NODE) {
      if (match.data !== child.data) match.data = child.data;
      continue;
    }
    for (const { name } of [...match.attributes]) if (!child.hasAttribute(name)) match.removeAttribute(name);
    for (const { name, value } of child.attributes) if (match.getAttribute(name) !== value) match.setAttribute(name, value);
    if (!match.matches("input, select, textarea")) put(match, child);
    else if (match.nodeName === "SELECT" && match !== document.activeElement) put(match, child);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

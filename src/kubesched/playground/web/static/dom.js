// Makes elements. Text is always text: nothing from the cluster is ever read as HTML.

export function make(tag, options = {}, ...children) {
  const element = document.createElement(tag);
  const { class: names, data = {}, style = {}, on = {}, ...attributes } = options;
  if (names) element.className = names;
  for (const [name, value] of Object.entries(data)) element.dataset[name] = value;
  for (const [name, value] of Object.entries(style)) element.style.setProperty(name, value);
  for (const [name, handler] of Object.entries(on)) element.addEventListener(name, handler);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== "" && child !== false));
  return element;
}

export const find = (id) => document.getElementById(id);

// Makes a parent hold these children. An element whose key was there before stays the same element, brought up to date:
// a press of the mouse must not lose its target between down and up, nor the keyboard its focus.
export function refill(parent, children) {
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  const before = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let at = parent.firstElementChild;
  for (const child of children) {
    const known = before.get(child.dataset.key);
    before.delete(child.dataset.key);
    if (known) update(known, child);
    const kept = known ?? child;
    if (kept === at) at = at.nextElementSibling;
    else parent.insertBefore(kept, at);
  }
  for (const gone of before.values()) gone.remove();
  if (focused?.isConnected && document.activeElement !== focused) focused.focus({ preventScroll: true });
}

// Gives an element the attributes and the content of another. Listeners stay: they must not depend on content.
function update(element, wanted) {
  if (element.isEqualNode(wanted)) return;
  for (const { name } of [...element.attributes]) if (!wanted.hasAttribute(name)) element.removeAttribute(name);
  for (const { name, value } of wanted.attributes) {
    if (element.getAttribute(name) === value) continue;
    if (name === "style") element.style.cssText = value; // as an attribute, the content security policy refuses it
    else element.setAttribute(name, value);
  }
  const pairs = [...wanted.childNodes].map((child, index) => [element.childNodes[index], child]);
  while (element.childNodes.length > pairs.length) element.lastChild.remove();
  for (const [old, child] of pairs) {
    if (!old) element.append(child);
    else if (old.nodeName !== child.nodeName) old.replaceWith(child);
    else if (old.nodeType === Node.TEXT_NODE) { if (old.data !== child.data) old.data = child.data; }
    else update(old, child);
  }
}

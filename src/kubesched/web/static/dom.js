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
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

export const find = (id) => document.getElementById(id);

// Replaces what a list holds and leaves the focus on the row with the same key.
export function refill(list, children) {
  const focused = list.contains(document.activeElement) ? document.activeElement.dataset.pod : undefined;
  list.replaceChildren(...children);
  if (focused !== undefined) list.querySelector(`[data-pod="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

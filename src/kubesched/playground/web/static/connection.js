// Talks to the server: hands the key over once, then listens. A lost connection is made again by the browser.

// Whether there was a key to hand over. It stands behind the # of the printed link; from here on it is a cookie that no script can read.
export async function logIn() {
  const key = new URLSearchParams(location.hash.slice(1)).get("key");
  if (!key) return false;
  history.replaceState(null, "", location.pathname);
  await fetch("/api/login", { method: "POST", body: JSON.stringify({ key }) });
  return true;
}

export function listen({ onState, onChange, onLink }) {
  const source = new EventSource("/api/stream");
  source.addEventListener("state", (event) => { onLink("live", "live"); onState(JSON.parse(event.data)); });
  source.addEventListener("change", (event) => onChange(JSON.parse(event.data)));
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) onLink("lost", "refused: open the link that kubesched printed");
    else onLink("lost", "connection lost, trying again");
  });
}

// The answer's body; an Error with the server's own words if it refused.
export async function ask(path) {
  let answer;
  try {
    answer = await fetch(path);
  } catch {
    throw new Error("the server does not answer");
  }
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(body.message ?? `${answer.status} ${answer.statusText}`);
  return body;
}

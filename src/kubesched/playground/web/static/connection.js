// Talks to the server: hands the key over once, then listens and asks. Addresses are relative to where the page is
// served: at / by the playground, at /web/ by a scheduler of a real cluster, where a token takes the key's place.

const BASE = new URL("../", import.meta.url);
const TOKEN = "kubesched-token";
const AGAIN_MS = 1500;

// Whether there was a key to hand over. It stands behind the # of the printed link; from here on it is a cookie that no script can read.
export async function logIn() {
  const key = new URLSearchParams(location.hash.slice(1)).get("key");
  if (!key) return false;
  history.replaceState(null, "", location.pathname);
  await fetch(new URL("api/login", BASE), { method: "POST", body: JSON.stringify({ key }) });
  return true;
}

// A token of the cluster, kept for as long as this tab is open.
export function useToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

function headers() {
  const token = sessionStorage.getItem(TOKEN);
  return token ? { Authorization: `Bearer ${token}` } : {};
}

// Server-sent events, read by hand: EventSource cannot send a token. A lost connection is made again.
export async function listen({ onState, onChange, onLink }) {
  for (;;) {
    try {
      const answer = await fetch(new URL("api/stream", BASE), { headers: headers() });
      if (answer.status === 401 || answer.status === 403) return onLink("refused", answer.status);
      if (!answer.ok) throw new Error(answer.statusText);
      for await (const [kind, body] of messages(answer.body)) {
        if (kind === "state") onLink("live");
        if (kind === "state") onState(JSON.parse(body));
        else if (kind === "change") onChange(JSON.parse(body));
      }
    } catch { /* said below */ }
    onLink("lost");
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

async function* messages(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  const parts = [];
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    parts.push(value);
    if (!value.includes("\n")) continue; // a large state comes in many pieces, and ends with its line
    const lines = parts.join("").split("\n\n");
    parts.length = 0;
    parts.push(lines.pop());
    for (const message of lines) {
      const [, kind, data] = /^event: (\w+)\ndata: (.*)$/s.exec(message) ?? [];
      if (kind) yield [kind, data];
    }
  }
}

// The answer's body; an Error with the server's own words if it refused.
export async function ask(path, body = undefined) {
  let answer;
  try {
    const options = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    answer = await fetch(new URL(`api/${path}`, BASE), { ...options, headers: { ...headers(), "Content-Type": "application/json" } });
  } catch {
    throw new Error("the server does not answer");
  }
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(found.message ?? `${answer.status} ${answer.statusText}`);
  return found;
}

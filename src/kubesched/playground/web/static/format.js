// Amounts, shares and times as people read them.

export function cpu(milli) {
  return milli % 1000 === 0 ? `${milli / 1000}` : milli >= 10000 ? `${(milli / 1000).toFixed(1)}` : `${milli}m`;
}

export function memory(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let power = 0;
  while (bytes >= 1024 && power < units.length - 1) { bytes /= 1024; power += 1; }
  return `${bytes >= 100 || Number.isInteger(bytes) ? Math.round(bytes) : bytes.toFixed(1)} ${units[power]}`;
}

export const part = (used, whole) => (whole > 0 ? Math.min(1, used / whole) : 0);
export const percent = (used, whole) => (whole > 0 ? `${Math.round((100 * used) / whole)} %` : "–");

export function age(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h`;
  return `${Math.floor(whole / 86400)} d`;
}

export const since = (epoch) => age(Date.now() / 1000 - epoch);
export const clock = (epoch) => new Date(epoch * 1000).toLocaleTimeString([], { hour12: false });
export const moment = (epoch) => new Date(epoch * 1000).toISOString();
const grouped = new Intl.NumberFormat("en");
export const count = (n) => (n < 1000 ? String(n) : grouped.format(n));
export const inOrder = new Intl.Collator("en", { numeric: true }).compare;

export function splitKey(key) {
  const at = key.indexOf("/");
  return [key.slice(0, at), key.slice(at + 1)];
}

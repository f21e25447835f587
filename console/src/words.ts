// Numbers, times and sizes in words; and what a hostile text really says.

export function count(n: number, one: string, many = `${one}s`): string {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}

export function bytes(n: number): string {
  if (n < 1000) return `${n} B`;
  if (n < 1_000_000) return `${(n / 1000).toFixed(n < 10_000 ? 1 : 0)} kB`;
  return `${(n / 1_000_000).toFixed(1)} MB`;
}

export function duration(us: number): string {
  if (us < 1000) return `${Math.round(us)} µs`;
  if (us < 10_000) return `${(us / 1000).toFixed(1)} ms`;
  if (us < 1_000_000) return `${Math.round(us / 1000)} ms`;
  if (us < 60_000_000) return `${(us / 1_000_000).toFixed(us < 10_000_000 ? 1 : 0)} s`;
  const minutes = Math.floor(us / 60_000_000);
  if (minutes < 60) return `${minutes} min ${Math.round((us % 60_000_000) / 1_000_000)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** "12 s ago", "in 4 min"; `now` is for tests. */
export function ago(time: string, now = Date.now()): string {
  const seconds = Math.round((now - Date.parse(time)) / 1000);
  const far = Math.abs(seconds);
  const words =
    far < 2 ? "" : far < 60 ? `${far} s` : far < 3600 ? `${Math.floor(far / 60)} min` : far < 86_400 ? `${Math.floor(far / 3600)} h` : `${Math.floor(far / 86_400)} d`;
  if (!words) return "now";
  return seconds < 0 ? `in ${words}` : `${words} ago`;
}

export function clock(time: string): string {
  return new Date(time).toLocaleTimeString("en-GB");
}

// Control characters, bidi controls, zero-width and tag characters: what could hide something or turn it around.
// Line feed and tab are left; so is the joiner within emoji, which is harmless there.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb]|(?<!\p{Extended_Pictographic}\ufe0f?|\p{Emoji_Modifier})\u200d|[\u{e0000}-\u{e007f}\u{e0100}-\u{e01ef}]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/gu;

export interface Piece { text: string; hidden: boolean }

/** The text in pieces: those that would not be seen are written out as `\u202e`. */
export function pieces(text: string): Piece[] {
  const found: Piece[] = [];
  let at = 0;
  text = text.replaceAll("\r\n", "\n");
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > at) found.push({ text: text.slice(at, match.index), hidden: false });
    found.push({ text: written(match[0]), hidden: true });
    at = match.index + match[0].length;
  }
  if (at < text.length) found.push({ text: text.slice(at), hidden: false });
  return found;
}

function written(character: string): string {
  const code = character.codePointAt(0)!;
  return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, "0")}`;
}

/** The same as plain text, for titles and attributes. */
export function plain(text: string): string {
  return pieces(text).map((piece) => piece.text).join("");
}

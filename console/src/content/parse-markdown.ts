// A small, safe part of Markdown as a tree: no HTML, nothing fetched, work bounded by the length of the text. Pure.

export type Inline =
  | string
  | { kind: "code"; text: string }
  | { kind: "strong" | "em" | "strike"; parts: Inline[] }
  | { kind: "link"; parts: Inline[]; href: string }
  | { kind: "image"; alt: string; href: string };

export type Node =
  | { kind: "heading"; level: number; parts: Inline[] }
  | { kind: "paragraph"; parts: Inline[] }
  | { kind: "code"; language: string; text: string }
  | { kind: "list"; ordered: boolean; start: number; items: Node[][] }
  | { kind: "quote"; nodes: Node[] }
  | { kind: "table"; head: Inline[][]; rows: Inline[][][] }
  | { kind: "rule" };

const DEPTH = 8;
const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/;
const RULE = /^ {0,3}([-*_])(\s*\1){2,}\s*$/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(\s+|$)(.*)$/;
const DIVIDER = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

/** Only http and https are followed; anything else is shown and not linked. */
export function safeLink(href: string): string | undefined {
  try {
    const url = new URL(href);
    return url.protocol === "http:" || url.protocol === "https:" ? url.href : undefined;
  } catch {
    return undefined;
  }
}

/** Whether it would look different from plain text. */
export function looksLikeMarkdown(text: string): boolean {
  const start = text.slice(0, 20_000);
  return /^#{1,6} \S|^```|^\s*[-*] \S.*\n\s*[-*] \S|^\|.+\|\s*\n\|[\s:|-]+\|/m.test(start) || /\*\*[^*\n]+\*\*|\[[^\]\n]+\]\(https?:/.test(start);
}

export function parseMarkdown(text: string): Node[] {
  return blocks(text.replaceAll("\r\n", "\n").split("\n"), 0);
}

function blocks(lines: string[], depth: number): Node[] {
  const found: Node[] = [];
  let paragraph: string[] = [];
  const flush = () => {
    if (paragraph.length) found.push({ kind: "paragraph", parts: inline(paragraph.join("\n"), 0) });
    paragraph = [];
  };
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at]!;
    const fence = FENCE.exec(line);
    if (fence) {
      flush();
      const body: string[] = [];
      for (at++; at < lines.length && !closes(lines[at]!, fence[1]!); at++) body.push(lines[at]!);
      found.push({ kind: "code", language: fence[2] ?? "", text: body.join("\n") });
      continue;
    }
    if (!line.trim()) {
      flush();
      continue;
    }
    const heading = HEADING.exec(line);
    if (heading) {
      flush();
      found.push({ kind: "heading", level: heading[1]!.length, parts: inline(heading[2]!, 0) });
      continue;
    }
    if (RULE.test(line)) {
      flush();
      found.push({ kind: "rule" });
      continue;
    }
    if (line.includes("|") && lines[at + 1]?.includes("-") && DIVIDER.test(lines[at + 1]!) && !paragraph.length) {
      const end = tableEnd(lines, at + 2);
      found.push({ kind: "table", head: cells(line), rows: lines.slice(at + 2, end).map(cells) });
      at = end - 1;
      continue;
    }
    if (depth < DEPTH && /^ {0,3}>/.test(line)) {
      flush();
      const inner: string[] = [];
      for (; at < lines.length && lines[at]!.trim() && (/^ {0,3}>/.test(lines[at]!) || inner.length); at++) inner.push(lines[at]!.replace(/^ {0,3}> ?/, ""));
      at--;
      found.push({ kind: "quote", nodes: blocks(inner, depth + 1) });
      continue;
    }
    const item = ITEM.exec(line);
    // A number in the middle of a paragraph begins no list.
    if (depth < DEPTH && item && (!paragraph.length || !/\d/.test(item[2]!))) {
      flush();
      const { node, end } = list(lines, at, depth);
      found.push(node);
      at = end - 1;
      continue;
    }
    paragraph.push(line.trimStart());
  }
  flush();
  return found;
}

function closes(line: string, fence: string): boolean {
  const trimmed = line.trim();
  return trimmed.length >= fence.length && trimmed === fence[0]!.repeat(trimmed.length);
}

function tableEnd(lines: string[], from: number): number {
  let end = from;
  while (end < lines.length && lines[end]!.trim() && lines[end]!.includes("|")) end++;
  return end;
}

function cells(line: string): Inline[][] {
  return line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => inline(cell.trim(), 0));
}

function list(lines: string[], from: number, depth: number): { node: Node; end: number } {
  const first = ITEM.exec(lines[from]!)!;
  const ordered = /\d/.test(first[2]!);
  const items: Node[][] = [];
  let current: string[] = [];
  let indent = 2;
  let at = from;
  for (; at < lines.length; at++) {
    const line = lines[at]!;
    const item = ITEM.exec(line);
    const depthOf = line.length - line.trimStart().length;
    if (item && /\d/.test(item[2]!) === ordered && (at === from || depthOf < indent)) {
      if (at !== from) items.push(blocks(current, depth + 1));
      indent = item[1]!.length + item[2]!.length + Math.min(item[3]!.length || 1, 4);
      current = [item[4]!];
    } else if (!line.trim()) {
      const next = lines[at + 1];
      if (next === undefined || !next.trim() || (next.length - next.trimStart().length < indent && !ITEM.test(next))) break;
      current.push("");
    } else if (depthOf >= Math.min(indent, 2)) current.push(line.slice(Math.min(depthOf, indent)));
    else if (item || HEADING.test(line) || FENCE.test(line) || RULE.test(line) || lines[at - 1]!.trim() === "") break;
    else current.push(line.trimStart());
  }
  items.push(blocks(current, depth + 1));
  return { node: { kind: "list", ordered, start: ordered ? parseInt(first[2]!, 10) : 1, items }, end: at };
}

const SPECIAL = /[`*_~![\\<h]/g;

function inline(text: string, depth: number): Inline[] {
  const found: Inline[] = [];
  let plain = "";
  const push = (part: Inline) => {
    if (plain) found.push(plain);
    plain = "";
    found.push(part);
  };
  let at = 0;
  while (at < text.length) {
    SPECIAL.lastIndex = at;
    const next = SPECIAL.exec(text);
    if (!next) break;
    plain += text.slice(at, next.index);
    at = next.index;
    const taken = depth < DEPTH ? special(text, at, depth) : undefined;
    if (taken) {
      if (typeof taken.part === "string") plain += taken.part;
      else push(taken.part);
      at = taken.end;
    } else plain += text[at++];
  }
  plain += text.slice(at);
  if (plain) found.push(plain);
  return found;
}

/** How far a closing mark is looked for: what is farther was not meant. */
const REACH = 2000;

function special(text: string, at: number, depth: number): { part: Inline; end: number } | undefined {
  const character = text[at]!;
  const rest = text.slice(at, at + REACH);
  if (character === "\\" && /[\\`*_{}[\]()#+.!~<>|-]/.test(rest[1] ?? "")) return { part: rest[1]!, end: at + 2 };
  if (character === "`") {
    const mark = /^`+/.exec(rest)![0];
    const close = rest.indexOf(mark, mark.length);
    return close < 0 ? undefined : { part: { kind: "code", text: rest.slice(mark.length, close).replace(/^ (.+) $/, "$1") }, end: at + close + mark.length };
  }
  if (character === "!" || character === "[") return linked(rest, at, depth);
  if (character === "<" || character === "h") {
    if (character === "h" && /\w/.test(text[at - 1] ?? "")) return undefined;
    const auto = character === "<" ? /^<(https?:\/\/[^\s<>]+)>/.exec(rest) : /^(https?:\/\/[^\s<>()[\]"'`]+[^\s<>()[\]"'`.,;:!?*_])/.exec(rest);
    return auto ? { part: { kind: "link", parts: [auto[1]!], href: auto[1]! }, end: at + auto[0].length } : undefined;
  }
  for (const [mark, kind] of [["**", "strong"], ["__", "strong"], ["~~", "strike"], ["*", "em"], ["_", "em"]] as const) {
    if (!rest.startsWith(mark) || /\s/.test(rest[mark.length] ?? " ")) continue;
    // snake_case is a name, not emphasis.
    if (mark[0] === "_" && /\w/.test(text[at - 1] ?? "")) return undefined;
    let close = rest.indexOf(mark, mark.length + 1);
    while (close > 0 && (/\s/.test(rest[close - 1]!) || (mark.length === 1 && rest[close + 1] === mark))) close = rest.indexOf(mark, close + (mark.length === 1 && rest[close + 1] === mark ? 2 : 1));
    if (close < 0 || (mark[0] === "_" && /\w/.test(rest[close + mark.length] ?? ""))) continue;
    return { part: { kind, parts: inline(rest.slice(mark.length, close), depth + 1) }, end: at + close + mark.length };
  }
  return undefined;
}

function linked(rest: string, at: number, depth: number): { part: Inline; end: number } | undefined {
  const match = /^(!?)\[((?:[^[\]\\]|\\.|\[[^[\]]*\])*)\]\(\s*<?([^\s<>()]*(?:\([^\s<>()]*\)[^\s<>()]*)*)>?(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)/.exec(rest);
  if (!match) return undefined;
  const [all, image, words, href] = match as unknown as [string, string, string, string];
  return { part: image ? { kind: "image", alt: words, href } : { kind: "link", parts: inline(words, depth + 1), href }, end: at + all.length };
}

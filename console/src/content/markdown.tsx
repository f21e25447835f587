// Markdown as elements: links show where they lead, images are links, HTML is text.
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { Text } from "../ui/text";
import { type Inline, type Node, parseMarkdown, safeLink } from "./parse-markdown";

export function Markdown({ text }: { text: string }) {
  const nodes = useMemo(() => parseMarkdown(text), [text]);
  return <div class="markdown">{nodes.map(block)}</div>;
}

function block(node: Node, key: number): ComponentChildren {
  switch (node.kind) {
    case "heading": {
      // The page has its own headings; these are words in it.
      return <p key={key} class={`h${Math.min(node.level, 4)}`} role="heading" aria-level={Math.min(6, node.level + 2)}>{node.parts.map(piece)}</p>;
    }
    case "paragraph":
      return <p key={key}>{node.parts.map(piece)}</p>;
    case "code":
      return <pre key={key} class="block" tabIndex={0} role="region" aria-label={node.language ? `${node.language} code` : "code"}><Text text={node.text} /></pre>;
    case "list": {
      const items = node.items.map((item, at) => <li key={at}>{item.length === 1 && item[0]!.kind === "paragraph" ? item[0]!.parts.map(piece) : item.map(block)}</li>);
      return node.ordered ? <ol key={key} start={node.start}>{items}</ol> : <ul key={key}>{items}</ul>;
    }
    case "quote":
      return <blockquote key={key}>{node.nodes.map(block)}</blockquote>;
    case "table":
      return (
        <div key={key} class="scrolls" tabIndex={0} role="region" aria-label="table">
          <table class="plain-table">
            <thead><tr>{node.head.map((cell, at) => <th key={at} scope="col">{cell.map(piece)}</th>)}</tr></thead>
            <tbody>{node.rows.map((row, at) => <tr key={at}>{node.head.map((_, column) => <td key={column}>{row[column]?.map(piece)}</td>)}</tr>)}</tbody>
          </table>
        </div>
      );
    case "rule":
      return <hr key={key} />;
  }
}

function piece(part: Inline, key: number): ComponentChildren {
  if (typeof part === "string") return <Text key={key} text={part} />;
  switch (part.kind) {
    case "code":
      return <code key={key}><Text text={part.text} /></code>;
    case "strong":
      return <strong key={key}>{part.parts.map(piece)}</strong>;
    case "em":
      return <em key={key}>{part.parts.map(piece)}</em>;
    case "strike":
      return <s key={key}>{part.parts.map(piece)}</s>;
    case "link":
      return <Away key={key} href={part.href} words={part.parts.length === 1 && part.parts[0] === part.href ? undefined : part.parts.map(piece)} />;
    case "image":
      return <Away key={key} href={part.href} words={<>image: <Text text={part.alt || "(no text)"} /></>} />;
  }
}

/** A link to elsewhere: its words and where it leads; followed only if it is http or https, and only when clicked. */
export function Away({ href, words }: { href: string; words?: ComponentChildren }) {
  const safe = safeLink(href);
  const shown = href.length > 120 ? `${href.slice(0, 117)}…` : href;
  const address = safe ? <a href={safe} rel="noopener noreferrer" target="_blank"><Text text={shown} /></a> : <code><Text text={shown || "no URL"} /></code>;
  return words ? <span>{words} <span class="away">({address})</span></span> : address;
}

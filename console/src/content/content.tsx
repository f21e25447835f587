// What MCP results, prompts and messages are made of, rendered.
import { to } from "../router";
import { isObject } from "../schema/model";
import { same } from "../schema/validate";
import type { CallEndReport, ContentBlock as Item } from "../types";
import { ButtonLink } from "../ui/button";
import { Hint } from "../ui/hint";
import { Long, Text } from "../ui/text";
import { bytes } from "../words";
import { Media } from "./media";
import { Structure } from "./structure";
import { Tree } from "./tree";
import { Words } from "./words";

/** `server` is where resource links are read. */
export function Content({ items, server }: { items: Item[]; server?: string }) {
  return <div class="stack">{items.map((item, at) => <One key={at} item={item} server={server} />)}</div>;
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function One({ item, server }: { item: Item; server?: string }) {
  switch (item.type) {
    case "text":
      return <Words text={text(item.text) ?? ""} />;
    case "image":
    case "audio":
      return <Media data={text(item.data) ?? ""} mime={text(item.mimeType) ?? "application/octet-stream"} alt={`${item.type} from the result`} />;
    case "resource_link":
      return <Linked item={item} server={server} />;
    case "resource":
      return isObject(item.resource) ? <ResourceContents contents={[item.resource as never]} /> : <Tree value={item} />;
    default:
      return <Tree value={item} />;
  }
}

function Linked({ item, server }: { item: Item; server?: string }) {
  const uri = text(item.uri) ?? "";
  return (
    <div class="card row spread">
      <div class="grow">
        <p><strong><Text text={text(item.title) ?? text(item.name) ?? uri} /></strong> {text(item.mimeType) && <span class="dim small"><Text text={text(item.mimeType)!} /></span>} {typeof item.size === "number" && <span class="dim small">{bytes(item.size)}</span>}</p>
        <p class="mono small break dim"><Text text={uri} /></p>
        {text(item.description) && <p><Long text={text(item.description)!} limit={300} /></p>}
      </div>
      {server && uri && <ButtonLink small href={to("resources", undefined, { server, uri })}>Read</ButtonLink>}
    </div>
  );
}

export interface Contents { uri: string; mimeType?: string; text?: string; blob?: string }

/** What a resource holds: text or bytes, with its address. */
export function ResourceContents({ contents }: { contents: Contents[] }) {
  return (
    <div class="stack">
      {contents.map((each, at) => (
        <div key={at} class="stack">
          <p class="mono small break dim"><Text text={String(each.uri ?? "")} />{each.mimeType ? <> · <Text text={String(each.mimeType)} /></> : null}{typeof each.text === "string" ? ` · ${bytes(each.text.length)}` : ""}</p>
          {typeof each.text === "string" ? <Words text={each.text} mime={each.mimeType} /> : typeof each.blob === "string" ? <Media data={each.blob} mime={each.mimeType ?? "application/octet-stream"} alt={String(each.uri)} /> : <p class="dim">Empty.</p>}
        </div>
      ))}
    </div>
  );
}

/** How a call ended. */
export function Result({ end, server }: { end: CallEndReport; server?: string }) {
  const { result, error } = end;
  if (error) {
    return (
      <div class="notice bad" role="alert">
        <p><Hint text={error.message} /></p>
        {error.hint && <p class="dim"><Hint text={error.hint} /></p>}
      </div>
    );
  }
  const structured = result?.structuredContent;
  // Servers repeat structured content as text for old clients; once is enough.
  const items = (result?.content ?? []).filter((item) => structured === undefined || !repeats(item, structured));
  return (
    <div class="stack">
      {result?.isError && <p class="notice bad" role="alert"><strong>The tool returned an error.</strong> Message:</p>}
      {structured !== undefined && (
        <section class="stack" aria-label="Structured content">
          <h3>Structured content</h3>
          <Structure value={structured} />
        </section>
      )}
      {items.length > 0 && <Content items={items} server={server} />}
      {!items.length && structured === undefined && <p class="dim">No content.</p>}
    </div>
  );
}

function repeats(item: Item, structured: unknown): boolean {
  if (item.type !== "text" || typeof item.text !== "string" || item.text.length > 1_000_000 || !/^\s*[[{]/.test(item.text)) return false;
  try {
    return same(JSON.parse(item.text), structured);
  } catch {
    return false;
  }
}

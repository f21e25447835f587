// Images, audio and other bytes: as blobs, shown only if their kind is one that a browser shows without danger.
import { useEffect, useMemo, useState } from "preact/hooks";
import { bytes as words } from "../words";
import { Text } from "../ui/text";

const IMAGES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp", "image/svg+xml"]);
const AUDIO = new Set(["audio/wav", "audio/x-wav", "audio/wave", "audio/mpeg", "audio/mp3", "audio/mp4", "audio/aac", "audio/ogg", "audio/webm", "audio/flac"]);

export function Media({ data, mime, alt }: { data: string; mime: string; alt: string }) {
  const kind = mime.split(";")[0]!.trim().toLowerCase();
  const bytes = useMemo(() => decode(data), [data]);
  const [url, setUrl] = useState<string | undefined>(undefined);
  useEffect(() => {
    if (!bytes) return undefined;
    // What is not on the lists becomes bytes without a kind: a browser saves it and never opens it as a page of ours.
    const made = URL.createObjectURL(new Blob([bytes], { type: IMAGES.has(kind) || AUDIO.has(kind) ? kind : "application/octet-stream" }));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [bytes, kind]);
  if (!bytes) return <p class="notice warn">Declared as <code><Text text={mime} /></code>, but not valid base64.</p>;
  const size = <span class="dim small"><Text text={mime} /> · {words(bytes.length)}</span>;
  if (!url) return <p>{size}</p>;
  const save = <a href={url} download={IMAGES.has(kind) || AUDIO.has(kind) ? `result.${kind.split("/")[1]!.split("+")[0]}` : "result.bin"}>Save</a>;
  return (
    <figure class="media">
      {IMAGES.has(kind) && <img src={url} alt={alt} />}
      {AUDIO.has(kind) && <audio src={url} controls aria-label={alt} />}
      <figcaption class="row">{size} {save}</figcaption>
    </figure>
  );
}

function decode(data: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    const text = atob(data.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = new Uint8Array(text.length);
    for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
    return bytes;
  } catch {
    return undefined;
  }
}

// What will run, exactly: every argument apart, so that spaces and quotes cannot deceive.
import { Text } from "../ui/text";

export function Command({ command, folder, url }: { command?: string[]; folder?: string; url?: string }) {
  if (url) return <p class="command"><span class="argument first"><Text text={url} /></span></p>;
  if (!command) return null;
  return (
    <div class="stack tight">
      <ol class="command" aria-label="Program and arguments">
        {command.map((word, at) => (
          <li key={at} class={at ? "argument" : "argument first"} title={at ? `argument ${at}` : "program"}>{word === "" ? <i class="dim">empty</i> : <Text text={word} />}</li>
        ))}
      </ol>
      {folder && <p class="small dim">in <code><Text text={folder} /></code></p>}
    </div>
  );
}

export function Names({ names, none }: { names: string[]; none: string }) {
  if (!names.length) return <span class="dim">{none}</span>;
  return <span class="names">{names.map((name) => <code key={name}><Text text={name} /></code>)}</span>;
}

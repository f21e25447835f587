// Keys that work anywhere: `/` searches, `g` and a letter goes to a page, `?` shows them all.
import { signal } from "@preact/signals";
import { signedIn } from "./live";
import { PAGES } from "./navigation";
import { isOwner } from "./rights";
import { go, to } from "./router";
import { nextTheme } from "./theme";
import { Dialog } from "./ui/dialog";

export const showKeys = signal(false);

/** How long `g` waits for its letter. */
const CHORD = 1500;

function typing(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  return !!element?.closest?.("input:not([type=checkbox]):not([type=radio]),textarea,select,[contenteditable=true]");
}

export function startKeys() {
  let since = 0;
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !signedIn.value) return;
    if (event.key === "Escape" && typing(event.target)) {
      (event.target as HTMLElement).blur();
      return;
    }
    if (typing(event.target) || document.querySelector("dialog[open]")) return;
    const chord = Date.now() - since < CHORD;
    since = 0;
    if (chord) {
      const page = PAGES.find((page) => page.key === event.key);
      if (page && (page.name !== "chat" || isOwner.value)) {
        event.preventDefault();
        go(to(page.name));
        return;
      }
    }
    if (event.key === "g") since = Date.now();
    else if (event.key === "?") showKeys.value = true;
    else if (event.key === "\\") nextTheme();
    else if (event.key === "/") {
      const search = document.querySelector<HTMLInputElement>("[data-search]");
      if (!search) return;
      event.preventDefault();
      search.focus();
      search.select();
    }
  });
}

export function KeysHelp() {
  const rows: [string[], string][] = [
    [["/"], "search this page"],
    [["↑", "↓"], "move through a list"],
    [["Enter"], "open"],
    [["Ctrl", "Enter"], "submit the form"],
    [["p"], "pause or resume live calls"],
    [["Esc"], "close, or leave a field"],
    [["\\"], "theme: light, dark, system"],
    [["?"], "keyboard shortcuts"],
    ...PAGES.map((page): [string[], string] => [["g", page.key], page.label]),
  ];
  return (
    <Dialog title="Keyboard shortcuts" close={() => (showKeys.value = false)}>
      <dl class="keys">
        {rows.map(([keys, words]) => (
          <div key={words}><dt>{keys.map((key) => <kbd key={key}>{key}</kbd>)}</dt><dd>{words}</dd></div>
        ))}
      </dl>
    </Dialog>
  );
}

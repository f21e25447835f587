// A list: entries to add, take out and move; the first of them may be of their own kinds.
import { useContext, useState } from "preact/hooks";
import { Button, IconButton } from "../ui/button";
import { Checkbox } from "../ui/field";
import { Text } from "../ui/text";
import { Entry, Forms, help, type Known, NullBox } from "./entry";
import { initial, type Keys, type Option, resolve, shape } from "./model";
import { same, step } from "./validate";

/** A choice of several among so many is a row of boxes. */
const BOXES = 24;

export function List(place: Known) {
  const { root, messages, shows, touch } = useContext(Forms);
  const { form, value, change, required, path } = place;
  // Entries that moved are made anew, so that nothing of the one that was there stays behind.
  const [turn, setTurn] = useState(0);
  if (form.kind !== "list") return null;
  const entries = Array.isArray(value) ? (value as unknown[]) : [];
  const nulled = form.nullable && value === null;
  const set = (next: unknown[]) => {
    touch(path);
    change(next.length || required ? next : undefined);
  };
  const kind = (at: number): Keys => form.fixed[at] ?? form.item ?? {};
  const add = () => set([...entries, initial(kind(entries.length), root, true) ?? null]);
  const move = (from: number, by: number) => {
    const next = [...entries];
    next.splice(from + by, 0, ...next.splice(from, 1));
    setTurn(turn + 1);
    set(next);
  };
  const remove = (at: number) => {
    setTurn(turn + 1);
    set(entries.toSpliced(at, 1));
  };
  const item = form.item && !form.fixed.length ? shape(resolve(form.item, root), root) : undefined;
  const options = item?.kind === "options" && !item.nullable && item.options.length <= BOXES ? item.options : undefined;
  // What was written as JSON may hold an option twice, or something else; boxes could not show that.
  const boxes = options && entries.every((entry, at) => options.some((option) => same(option.value, entry)) && !entries.slice(0, at).some((other) => same(other, entry))) ? options : undefined;
  const more = entries.length < form.fixed.length || (form.item !== undefined && entries.length < form.most);
  const error = shows(path) ? messages.get(path) : undefined;
  return (
    <fieldset class="group">
      <legend>{place.label}{required && !place.entry && <span class="required" aria-hidden="true"> *</span>} <span class="dim">{boxes ? "" : entries.length ? `${entries.length}` : "empty"}</span></legend>
      {!place.inner && help(place.known) && <p class="help">{help(place.known)}</p>}
      {boxes && !nulled && <Boxes options={boxes} entries={entries} set={set} />}
      {!boxes && entries.map((entry, at) => (
        <div class="entry" key={at}>
          <div class="grow" key={`${turn}`}>
            <Entry schema={kind(at)} value={entry ?? undefined} path={step(path, at)} name={String(at + 1)} required entry depth={place.depth + 1} change={(next) => set(entries.with(at, next ?? (typeof entry === "string" ? "" : null)))} />
          </div>
          <div class="entry-tools">
            <IconButton icon="up" label={`Move ${place.words} ${at + 1} up`} disabled={at === 0} onClick={() => move(at, -1)} />
            <IconButton icon="down" label={`Move ${place.words} ${at + 1} down`} disabled={at === entries.length - 1} onClick={() => move(at, 1)} />
            <IconButton icon="close" label={`Remove ${place.words} ${at + 1}`} onClick={() => remove(at)} />
          </div>
        </div>
      ))}
      {error && <p class="error">{error}</p>}
      <div class="row">
        {more && !nulled && !boxes && <Button small icon="plus" onClick={add} aria-label={`Add to ${place.words}`}>Add</Button>}
        {form.nullable && <NullBox off={nulled} words={place.words} set={(on) => change(on ? null : undefined)} />}
      </div>
    </fieldset>
  );
}

function Boxes({ options, entries, set }: { options: Option[]; entries: unknown[]; set: (entries: unknown[]) => void }) {
  const on = (option: Option) => entries.some((entry) => same(entry, option.value));
  return (
    <div class="boxes">
      {options.map((option, at) => (
        <Checkbox key={at} label={<Text text={option.label} />} checked={on(option)} onChange={(event) => {
          const { checked } = event.currentTarget;
          // In the order in which they are offered, however they were clicked.
          set(options.filter((each) => (each === option ? checked : on(each))).map((each) => each.value));
        }} />
      ))}
    </div>
  );
}

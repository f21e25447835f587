// An object: its declared members as fields, others as rows of a name and a value.
import { useContext, useState } from "preact/hooks";
import { Button, IconButton } from "../ui/button";
import { Entry, Forms, help, type Known, NullBox } from "./entry";
import { initial, isObject, type Keys, own, withMember } from "./model";
import { step } from "./validate";

/** So many members are shown at once; a schema may declare thousands. */
const SHOWN = 100;

export function Members(place: Known) {
  const { root, messages, shows } = useContext(Forms);
  const [all, showAll] = useState(false);
  const { form, value, change, required, path, depth } = place;
  if (form.kind !== "object") return null;
  const order = form.properties.map((property) => property.name);
  const set = (name: string, member: unknown) => change(withMember(value, name, member, order));
  const fields = (
    <>
      {(all ? form.properties : form.properties.slice(0, SHOWN)).map((property) => (
        <Entry key={property.name} schema={property.schema} value={own(value, property.name)} path={step(path, property.name)} name={property.name} required={property.required} depth={depth + 1} change={(member) => set(property.name, member)} />
      ))}
      {!all && form.properties.length > SHOWN && <button type="button" class="linkish" onClick={() => showAll(true)}>show {form.properties.length - SHOWN} more</button>}
      <Others place={place} order={order} />
    </>
  );
  if (path === "") return <div class="fields">{fields}</div>;
  const absent = value === undefined;
  const nulled = form.nullable && value === null;
  const error = shows(path) ? messages.get(path) : undefined;
  return (
    <fieldset class="group">
      <legend class={place.inner ? "sr" : undefined}>{place.label}{required && !place.inner && !place.entry && <span class="required" aria-hidden="true"> *</span>}{absent && <span class="dim"> not set</span>}</legend>
      {!place.inner && help(place.known) && <p class="help">{help(place.known)}</p>}
      {!absent && !nulled && <div class="fields">{fields}</div>}
      {error && <p class="error">{error}</p>}
      {(!required || form.nullable || absent) && !place.inner && (
        <div class="row">
          {absent ? <Button small icon="plus" aria-label={`Add ${place.words}`} onClick={() => change(initial(place.known, root, true) ?? {})}>Add</Button>
            : !required && <Button small icon="close" aria-label={`Remove ${place.words}`} onClick={() => change(undefined)}>Remove</Button>}
          {form.nullable && <NullBox off={nulled} words={place.words} set={(on) => change(on ? null : undefined)} />}
        </div>
      )}
    </fieldset>
  );
}

/** Members that are not declared. Those that are there can always be seen and taken out, even if they may not be there. */
function Others({ place, order }: { place: Known; order: string[] }) {
  const { root } = useContext(Forms);
  const [fresh, setFresh] = useState("");
  const { form, value, change, path, depth } = place;
  const rest: Keys | undefined = form.kind === "object" ? form.rest : undefined;
  const names = isObject(value) ? Object.keys(value).filter((name) => !order.includes(name)) : [];
  if (!rest && !names.length) return null;
  const members = isObject(value) ? value : {};
  const taken = fresh === "" || order.includes(fresh) || Object.hasOwn(members, fresh);
  const add = () => {
    if (taken) return;
    change({ ...members, [fresh]: initial(rest, root, true) ?? "" });
    setFresh("");
  };
  return (
    <div class="fields">
      {names.map((name) => (
        <div class="entry" key={name}>
          <div class="grow"><Entry schema={rest ?? {}} value={members[name]} path={step(path, name)} name={name} required entry depth={depth + 1} change={(member) => change({ ...members, [name]: member ?? "" })} /></div>
          <div class="entry-tools"><IconButton icon="close" label={`Remove ${name}`} onClick={() => change(withMember(value, name, undefined, order))} /></div>
        </div>
      ))}
      {rest && (
        <div class="row">
          <input class="input short" aria-label={`Name of a new member${place.words ? ` of ${place.words}` : ""}`} placeholder="name" value={fresh} onInput={(event) => setFresh(event.currentTarget.value)} onKeyDown={(event) => {
            if (event.key !== "Enter") return;
            event.preventDefault();
            add();
          }} />
          <Button small icon="plus" disabled={taken} onClick={add}>Add member</Button>
        </div>
      )}
    </div>
  );
}

// A value of one of several variants: which one, then its form.
import { useContext, useState } from "preact/hooks";
import { Select } from "../ui/field";
import { Entry, Forms, help, type Known } from "./entry";
import { initial, variantOf } from "./model";
import { distance } from "./validate";

export function Choice(place: Known) {
  const { root, messages, shows } = useContext(Forms);
  const { form, value, change, required } = place;
  const [picked, pick] = useState<number | undefined>(undefined);
  if (form.kind !== "choice") return null;
  const none = value === undefined && picked === undefined;
  const at = value === null && form.nullable ? -2 : none ? -1 : (picked ?? variantOf(form.variants, value, (schema, value) => distance(schema, value, root)));
  const choose = (next: number) => {
    pick(next < 0 ? undefined : next);
    change(next === -2 ? null : next < 0 ? undefined : initial(form.variants[next]!.schema, root, true));
  };
  const variant = form.variants[at];
  return (
    <div class="group">
      <Select
        label={place.label || "Value"}
        required={required && !place.entry}
        help={place.inner ? undefined : help(place.known)}
        error={shows(place.path) && at < 0 ? messages.get(place.path) : undefined}
        value={String(at)}
        onChange={(event) => choose(Number(event.currentTarget.value))}
        options={[
          ...(at === -1 || !required ? [{ value: "-1", label: required ? "choose…" : "not set" }] : []),
          ...form.variants.map((each, index) => ({ value: String(index), label: each.label })),
          ...(form.nullable ? [{ value: "-2", label: "null" }] : []),
        ]}
      />
      {variant && <Entry key={at} schema={variant.schema} value={value} path={place.path} name={variant.label} required depth={place.depth + 1} change={change} inner />}
    </div>
  );
}

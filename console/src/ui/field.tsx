// A label, a control, what helps and what is wrong with it.
import type { ComponentChildren, TargetedEvent, TargetedKeyboardEvent } from "preact";
import { useId } from "preact/hooks";
import { plain } from "../words";

/** What may be said of a control beside its label; a narrow choice, since JSX's own types tie roles to input types. */
interface Control<E extends EventTarget> {
  value?: string | number;
  type?: string;
  name?: string;
  class?: string;
  placeholder?: string;
  disabled?: boolean;
  checked?: boolean;
  autocomplete?: string;
  autofocus?: boolean;
  spellcheck?: boolean;
  list?: string;
  min?: string | number;
  max?: string | number;
  step?: string | number;
  rows?: number;
  inputMode?: string;
  "data-search"?: boolean;
  onInput?: (event: TargetedEvent<E, Event>) => void;
  onChange?: (event: TargetedEvent<E, Event>) => void;
  onBlur?: (event: TargetedEvent<E, FocusEvent>) => void;
  onFocus?: (event: TargetedEvent<E, FocusEvent>) => void;
  onKeyDown?: (event: TargetedKeyboardEvent<E>) => void;
}

interface Common {
  label: ComponentChildren;
  help?: ComponentChildren;
  error?: string;
  required?: boolean;
  /** The label is there for those who hear the page only. */
  hideLabel?: boolean;
}

/** Wraps any control: give it `control(id, describedBy)`. */
export function Field({ label, help, error, required, hideLabel, control }: Common & { control: (id: string, describedBy: string | undefined) => ComponentChildren }) {
  const id = useId();
  const described = [help && `${id}-help`, error && `${id}-error`].filter(Boolean).join(" ") || undefined;
  return (
    <div class={error ? "field wrong" : "field"}>
      <label for={id} class={hideLabel ? "sr" : undefined}>
        {label}
        {required && <span class="required" aria-hidden="true"> *</span>}
      </label>
      {control(id, described)}
      {help && <p class="help" id={`${id}-help`}>{help}</p>}
      {error && <p class="error" id={`${id}-error`}>{error}</p>}
    </div>
  );
}

export function TextField({ label, help, error, required, hideLabel, class: more, ...rest }: Common & Control<HTMLInputElement>) {
  return (
    <Field label={label} help={help} error={error} required={required} hideLabel={hideLabel} control={(id, described) => (
      <input type="text" autocomplete="off" {...(rest as object)} id={id} class={`input ${more ?? ""}`} aria-describedby={described} aria-invalid={error ? true : undefined} aria-required={required || undefined} />
    )} />
  );
}

export function TextArea({ label, help, error, required, hideLabel, class: more, ...rest }: Common & Control<HTMLTextAreaElement>) {
  return (
    <Field label={label} help={help} error={error} required={required} hideLabel={hideLabel} control={(id, described) => (
      <textarea rows={4} spellcheck={false} {...(rest as object)} id={id} class={`input ${more ?? ""}`} aria-describedby={described} aria-invalid={error ? true : undefined} aria-required={required || undefined} />
    )} />
  );
}

export function Select({ label, help, error, required, hideLabel, options, value, ...rest }: Common & Control<HTMLSelectElement> & { options: { value: string; label: string }[] }) {
  return (
    <Field label={label} help={help} error={error} required={required} hideLabel={hideLabel} control={(id, described) => (
      <select {...(rest as object)} value={value} id={id} class="input" aria-describedby={described} aria-invalid={error ? true : undefined} aria-required={required || undefined}>
        {options.map((option) => <option key={option.value} value={option.value} selected={option.value === value}>{plain(option.label)}</option>)}
      </select>
    )} />
  );
}

export function Checkbox({ label, help, ...rest }: { label: ComponentChildren; help?: ComponentChildren } & Control<HTMLInputElement>) {
  const id = useId();
  return (
    <div class="check">
      <input {...(rest as object)} type="checkbox" id={id} aria-describedby={help ? `${id}-help` : undefined} />
      <label for={id}>{label}</label>
      {help && <p class="help" id={`${id}-help`}>{help}</p>}
    </div>
  );
}

/** The search field that `/` focuses. */
export function Search({ label, ...rest }: { label: string } & Control<HTMLInputElement>) {
  return <input autocomplete="off" spellcheck={false} {...(rest as object)} type="search" class="input search" data-search aria-label={label} placeholder={`${label}  /`} />;
}

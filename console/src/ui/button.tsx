// Buttons, and what looks like one.
import type { ComponentChildren, JSX } from "preact";
import { Icon, type IconName } from "./icon";

type Own = {
  kind?: "plain" | "primary" | "danger" | "quiet";
  small?: boolean;
  busy?: boolean;
  icon?: IconName;
  children?: ComponentChildren;
};

export function Button({ kind = "plain", small, busy, icon, children, class: more, disabled, ...rest }: Own & JSX.IntrinsicElements["button"]) {
  return (
    <button type="button" {...rest} disabled={disabled || busy} aria-busy={busy || undefined} class={`button ${kind}${small ? " small" : ""}${busy ? " busy" : ""} ${more ?? ""}`}>
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

/** A button that is only an icon; `label` is what it does. */
export function IconButton({ label, icon, class: more, ...rest }: { label: string; icon: IconName } & JSX.IntrinsicElements["button"]) {
  return (
    <button type="button" {...rest} class={`icon-button ${more ?? ""}`} aria-label={label} title={label}>
      <Icon name={icon} />
    </button>
  );
}

export function ButtonLink({ kind = "plain", small, icon, children, class: more, ...rest }: Own & JSX.IntrinsicElements["a"]) {
  return (
    <a {...rest} class={`button ${kind}${small ? " small" : ""} ${more ?? ""}`}>
      {icon && <Icon name={icon} />}
      {children}
    </a>
  );
}

// Where something is missing because the caller is no operator, or signed in too long ago.
import { session } from "../live";
import { isOperator } from "../rights";
import { noteReturn, ownPath } from "../sign-in";
import { ButtonLink } from "./button";

export function OperatorNote() {
  if (isOperator.value) return null;
  const again = ownPath(session.value?.operator_sign_in);
  return again ? <ButtonLink small href={again} onClick={noteReturn}>Sign in again to make changes</ButtonLink> : <p class="dim small">Changes need the role <code>operator</code>.</p>;
}

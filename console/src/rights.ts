// What the caller may do, as far as the page shows or hides it. The gateway decides.
import { computed } from "@preact/signals";
import { session } from "./live";

/** Whether conversations and agents are open; true until the gateway says otherwise. */
export const isOwner = computed(() => (session.value?.rights ?? "owner") === "owner");

/** Whether servers, pins and the config may be changed; true until the gateway says otherwise. */
export const isOperator = computed(() => session.value?.rights !== "admin");

// What the page takes the API to say, held against docs/openapi.json, which is made from the gateway's routes:
// `npm run check` writes `.test/openapi.d.ts` from it and fails where the two differ.
import type { components } from "../.test/openapi";
import type * as page from "../src/types";

type Api = components["schemas"];

/** What the description leaves open (schemas, results) is for the page to look at. */
type Open<T> = unknown extends T
  ? any
  : T extends (infer Item)[]
    ? Open<Item>[]
    : T extends object
      ? { [Key in keyof T]: Open<T[Key]> }
      : T;

/** Fails unless everything the gateway may say is something the page understands. */
type Understood<Said extends Known, Known> = Said;

export type Contract = [
  Understood<Open<Api["SessionReport"]>, page.SessionReport>,
  Understood<Open<Api["ServerReport"]>, page.ServerReport>,
  Understood<Open<Api["ServerDetail"]>, page.ServerDetail>,
  Understood<Open<Api["ServerDraft"]>, page.ServerDraft>,
  Understood<Open<Api["ToolRow"]>, page.ToolRow>,
  Understood<Open<Api["ToolDetail"]>, page.ToolDetail>,
  Understood<Open<Api["PromptRow"]>, page.PromptRow>,
  Understood<Open<Api["ResourceRow"]>, page.ResourceRow>,
  Understood<Open<Api["PinReport"]>, page.PinReport>,
  Understood<Open<Api["CallEndReport"]>, page.CallEndReport>,
  Understood<Open<Api["CallReport"]>, page.CallReport>,
  Understood<Open<Api["CallDetail"]>, page.CallDetail>,
  Understood<Open<Api["CallStatistics"]>, page.CallStatistics>,
  Understood<Open<Api["PendingRequest"]>, page.PendingRequest>,
  Understood<Open<Api["ConversationSummary"]>, page.ConversationSummary>,
  Understood<Open<Api["RunReport"]>, page.RunReport>,
  Understood<Open<Api["ProfileReport"]>, page.ProfileReport>,
  Understood<Open<Api["ConnectGuide"]>, page.ConnectGuide>,
  Understood<Open<Api["ErrorBody"]>, page.ErrorBody>,
];

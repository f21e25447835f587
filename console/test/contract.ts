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
  Understood<Open<Api["Session"]>, page.Session>,
  Understood<Open<Api["Server"]>, page.Server>,
  Understood<Open<Api["ServerDetail"]>, page.ServerDetail>,
  Understood<Open<Api["Draft"]>, page.Draft>,
  Understood<Open<Api["Tool"]>, page.Tool>,
  Understood<Open<Api["ToolDetail"]>, page.ToolDetail>,
  Understood<Open<Api["Prompt"]>, page.Prompt>,
  Understood<Open<Api["Resource"]>, page.Resource>,
  Understood<Open<Api["Pins"]>, page.Pins>,
  Understood<Open<Api["CallEnd"]>, page.CallEnd>,
  Understood<Open<Api["Call"]>, page.Call>,
  Understood<Open<Api["CallDetail"]>, page.CallDetail>,
  Understood<Open<Api["Stats"]>, page.Stats>,
  Understood<Open<Api["Question"]>, page.Question>,
  Understood<Open<Api["Conversation"]>, page.Conversation>,
  Understood<Open<Api["Report"]>, page.Report>,
  Understood<Open<Api["Profile"]>, page.Profile>,
  Understood<Open<Api["Connect"]>, page.Connect>,
  Understood<Open<Api["Refused"]>, page.Refusal>,
];

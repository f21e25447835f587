// The package has no types of its own; these are of what is used of it.
declare module "oidc-provider" {
  import type { IncomingMessage, ServerResponse } from "node:http";
  export default class Provider {
    constructor(issuer: string, configuration: Record<string, unknown>);
    callback(): (request: IncomingMessage, response: ServerResponse) => void;
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<{ uid: string }>;
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: unknown, options?: { mergeWithLastSubmission?: boolean }): Promise<void>;
    Grant: new (of: { clientId: string; accountId: string }) => { addOIDCScope(scope: string): void; save(): Promise<string> };
  }
}

// An OpenID provider where users sign in: oidc-provider, with a page that has a button for each user.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";

/** The users by their subjects, with their groups. */
export type People = Record<string, { name: string; groups: string[] }>;

/** An issuer for one client. */
export class Issuer {
  /** Where it is. */
  url = "";
  /** True if users sign in now; else they signed in an hour ago. */
  fresh = false;
  readonly secret = "the-secret-of-the-gateway";
  readonly #server: Server = createServer();
  readonly #people: People;

  constructor(people: People) {
    this.#people = people;
  }

  /** Starts it for a gateway at this origin. */
  async start(gateway: string): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    const people = this.#people;
    const provider = new Provider(this.url, {
      clients: [{
        client_id: "consort",
        client_secret: this.secret,
        redirect_uris: [`${gateway}/oauth/callback/acme`],
        grant_types: ["authorization_code", "refresh_token"],
        require_auth_time: true,
      }],
      claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"], groups: ["groups"] },
      scopes: ["openid", "offline_access", "groups"],
      conformIdTokenClaims: false,
      cookies: { keys: ["a key for tests"] },
      features: { devInteractions: { enabled: false } },
      interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
      issueRefreshToken: () => true,
      rotateRefreshToken: true,
      findAccount: (_: unknown, id: string) => ({
        accountId: id,
        claims: () => ({ sub: id, email: `${id}@acme.example`, email_verified: true, name: people[id]!.name, groups: people[id]!.groups }),
      }),
      // Whoever signs in consents.
      loadExistingGrant: async ({ oidc }: { oidc: { provider: Provider; client: { clientId: string }; session: { accountId: string } } }) => {
        const grant = new oidc.provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
        grant.addOIDCScope("openid email profile groups offline_access");
        await grant.save();
        return grant;
      },
    });
    const answer = provider.callback();
    this.#server.on("request", (request, response) => {
      const url = new URL(request.url!, this.url);
      if (!url.pathname.startsWith("/interaction/")) return answer(request, response);
      const user = url.searchParams.get("user");
      if (!user) {
        const buttons = Object.entries(people).map(([id, { name }]) => `<p><button name="user" value="${id}">${name}</button></p>`);
        return response.setHeader("content-type", "text/html").end(`<!doctype html><html lang="en"><title>Acme</title><h1>Acme</h1><form>${buttons.join("")}</form></html>`);
      }
      const ts = Math.floor(Date.now() / 1000) - (this.fresh ? 0 : 3600);
      void provider.interactionFinished(request, response, { login: { accountId: user, ts, remember: true } }, { mergeWithLastSubmission: false });
    });
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

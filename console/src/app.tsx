// The frame: navigation, the connection bar, keys, and the page that the address names.
import type { FunctionComponent } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { startAlerts } from "./alerts";
import { del } from "./api";
import { startKeys, showKeys, KeysHelp } from "./keys";
import { going, leave, link, retryNow, servers, session, signedIn, startLive, pendingCount } from "./live";
import { PAGES, type PageName } from "./navigation";
import { isOwner } from "./rights";
import { go, route, startRouter, to } from "./router";
import { nextTheme, theme } from "./theme";
import { Calls } from "./pages/calls";
import { Chat } from "./pages/chat";
import { Connect } from "./pages/connect";
import { Login } from "./pages/login";
import { Pins } from "./pages/pins";
import { Profiles } from "./pages/profiles";
import { Prompts } from "./pages/prompts";
import { Approvals } from "./pages/approvals";
import { Resources } from "./pages/resources";
import { Servers } from "./pages/servers";
import { Tools } from "./pages/tools";
import { IconButton } from "./ui/button";
import { Empty } from "./ui/empty";
import { Icon } from "./ui/icon";
import { RejectedChanges } from "./ui/rejected-changes";
import { Page } from "./ui/page";
import { Text } from "./ui/text";
import { Toasts } from "./ui/toast";
import type { SessionReport } from "./types";
import { plain } from "./words";

const VIEWS: Record<PageName, FunctionComponent<{ id: string }>> = {
  servers: Servers, tools: Tools, prompts: Prompts, resources: Resources, calls: Calls,
  chat: Chat, approvals: Approvals, profiles: Profiles, pins: Pins, connect: Connect,
};

export function App() {
  useEffect(() => {
    startRouter();
    startKeys();
    startLive();
    startAlerts();
    if (!route.value.page) go(to("servers"), "replace");
  }, []);
  if (signedIn.value === false) return <Login />;
  return (
    <>
      <a class="skip" href="#main">Skip to content</a>
      <ConnectionBar />
      <RejectedChanges />
      <div class="frame">
        <Navigation />
        <Current />
      </div>
      <p class="sr" role="status">{pendingCount.value ? `${pendingCount.value} pending approvals` : ""}</p>
      <Toasts />
      {showKeys.value && <KeysHelp />}
    </>
  );
}

function Current() {
  const { page, id } = route.value;
  const main = useRef<HTMLElement>(null);
  const before = useRef(page);
  useEffect(() => {
    if (before.current !== page) {
      main.current?.querySelector("h1")?.focus({ preventScroll: true });
      scrollTo(0, 0);
    }
    before.current = page;
  }, [page]);
  const View = VIEWS[page as PageName];
  return (
    <main id="main" ref={main} tabIndex={-1}>
      {page === "chat" && !isOwner.value ? <OwnersOnly /> : View ? <View id={id} /> : page ? (
        <Page title="Page not found"><Empty title={`There is no page “${page}”`}><a href={to("servers")}>Go to the servers</a></Empty></Page>
      ) : null}
    </main>
  );
}

function OwnersOnly() {
  return <Page title="Chat"><Empty title="Only the owner sees conversations"><p>Sign in with the gateway's token to talk to agents here.</p></Empty></Page>;
}

/** Says that what is shown may be old; lies over the page, so that nothing moves. */
function ConnectionBar() {
  return (
    <div class="connection" role="status" hidden={link.value !== "lost"}>
      {link.value === "lost" && <>Connection to the gateway lost; retrying. <button type="button" class="linkish" onClick={retryNow}>Retry now</button></>}
    </div>
  );
}

function badge(page: PageName): { text: string; tone: string; words: string } | undefined {
  if (page === "approvals" && pendingCount.value) return { text: String(pendingCount.value), tone: "accent", words: "pending" };
  if (page === "servers") {
    const down = servers.value?.filter((server) => server.state === "failed" || server.state === "needs auth").length;
    if (down) return { text: String(down), tone: "bad", words: "not ready" };
  }
  if (page === "calls" && going.value) return { text: String(going.value), tone: "neutral", words: "in progress" };
  return undefined;
}

function Navigation() {
  const [open, setOpen] = useState(false);
  const here = route.value.page;
  useEffect(() => setOpen(false), [here]);
  const signOut = async () => {
    await del("/session").catch(() => {});
    leave();
  };
  return (
    <nav class={open ? "nav open" : "nav"} aria-label="Pages" onKeyDown={(event) => event.key === "Escape" && setOpen(false)}>
      <a class="brand" href={to("servers")}><Mark /> Consort</a>
      <ul>
        {PAGES.filter((page) => page.name !== "chat" || isOwner.value).map((page) => {
          const mark = badge(page.name);
          return (
            <li key={page.name} class={page.first ? "first" : undefined}>
              <a href={to(page.name)} aria-current={here === page.name ? "page" : undefined} title={`${page.label} (g ${page.key})`}>
                <Icon name={page.name} />
                <span>{page.label}</span>
                {mark && <span class={`count ${mark.tone}`}>{mark.text}<span class="sr"> {mark.words}</span></span>}
              </a>
            </li>
          );
        })}
        <li class="first more">
          <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}><Icon name={open ? "close" : "more"} /><span>{open ? "Less" : "More"}</span></button>
        </li>
      </ul>
      <div class="nav-foot">
        <div class="row">
          <IconButton icon={theme.value} label={`Theme: ${theme.value}`} onClick={nextTheme} />
          <IconButton icon="keys" label="Keyboard shortcuts" onClick={() => (showKeys.value = true)} />
          {session.value?.protected && <IconButton icon="leave" label="Sign out" onClick={signOut} />}
        </div>
        {session.value ? <SignedInAs session={session.value} /> : <p>{"\u00a0"}</p>}
      </div>
    </nav>
  );
}

/** The version, and whoever is signed in. */
function SignedInAs({ session }: { session: SessionReport }) {
  const { version, caller, label, rights, account, config } = session;
  return (
    <>
      <p class="dim" title={config}>{version} · {label ? <span title={plain(caller)}><Text text={label} /></span> : <Text text={caller} />}{rights !== "owner" && ` (${rights})`}</p>
      {account && <p><a href={account}>Your access</a></p>}
    </>
  );
}

/** Four voices, one line. */
function Mark() {
  return (
    <svg class="mark" width="20" height="20" viewBox="0 0 20 20" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" aria-hidden="true">
      <path d="M2 4c6 0 6 6 10 6h6M2 8c5 0 6 2 10 2M2 12c5 0 6-2 10-2M2 16c6 0 6-6 10-6" />
    </svg>
  );
}

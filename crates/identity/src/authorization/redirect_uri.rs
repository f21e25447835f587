//! Redirect URIs: the forms that are accepted, and comparison with those of a client.

use http::Uri;

use crate::settings::AuthorizationSettings;

/// Maximum length of a redirect URI.
const LONGEST: usize = 2048;

/// Hosts of redirect URIs that are this machine. Their port is free (RFC 8252).
const LOOPBACK: [&str; 3] = ["127.0.0.1", "[::1]", "localhost"];

/// Returns true if a client may have a redirect URI at all.
pub(crate) fn is_sound(uri: &str, settings: &AuthorizationSettings) -> bool {
    if uri.len() > LONGEST
        || !uri.bytes().all(|byte| byte.is_ascii_graphic())
        || uri.contains(['#', '\\', '"'])
    {
        return false;
    }
    let is_listed = |listed: &String| match listed.strip_suffix('*') {
        // Behind a host, so that no other host begins the same way.
        Some(start) => {
            let path = start.split_once("://").and_then(|(_, rest)| rest.find('/'));
            path.is_some() && uri.starts_with(start)
        }
        None => *listed == uri,
    };
    let allowed = &settings.allowed_redirect_uris;
    if !allowed.is_empty() && !allowed.iter().any(is_listed) {
        return false;
    }
    if settings.allowed_redirect_schemes.iter().any(|listed| listed == uri) {
        return !has_dangerous_scheme(uri);
    }
    match WebUri::parse(uri) {
        Some(web) => web.is_secure || web.is_loopback(),
        None => false,
    }
}

fn has_dangerous_scheme(uri: &str) -> bool {
    let scheme = uri.split(':').next().unwrap_or_default().to_ascii_lowercase();
    matches!(
        scheme.as_str(),
        "javascript" | "data" | "file" | "vbscript" | "blob" | "about" | "http"
    )
}

/// Returns true if a requested redirect URI is one of a client's: the same text, or the same but for the port on this
/// machine.
pub(crate) fn is_registered(requested: &str, registered: &[String]) -> bool {
    registered.iter().any(|known| known == requested || is_same_loopback(requested, known))
}

fn is_same_loopback(requested: &str, known: &str) -> bool {
    let (Some(requested), Some(known)) = (WebUri::parse(requested), WebUri::parse(known)) else {
        return false;
    };
    requested.is_loopback()
        && !requested.is_secure
        && !known.is_secure
        && requested.host == known.host
        && requested.rest == known.rest
}

/// Returns the host of a redirect URI, or its scheme if it has none, for people.
pub(crate) fn shown_host(uri: &str) -> String {
    match WebUri::parse(uri) {
        Some(web) => web.authority.to_owned(),
        None => format!(
            "{}: (an application on your computer)",
            uri.split(':').next().unwrap_or_default()
        ),
    }
}

/// Returns true if a redirect leads to a program on the computer of the browser.
pub(crate) fn is_local(uri: &str) -> bool {
    WebUri::parse(uri).is_none_or(|web| web.is_loopback())
}

/// Returns the host of an https redirect URI.
pub(crate) fn https_host(uri: &str) -> Option<&str> {
    WebUri::parse(uri).filter(|web| web.is_secure).map(|web| web.host)
}

/// The parts of an `http` or `https` URI, as written.
struct WebUri<'a> {
    is_secure: bool,
    authority: &'a str,
    host: &'a str,
    /// Path and query.
    rest: &'a str,
}

impl<'a> WebUri<'a> {
    fn parse(uri: &'a str) -> Option<Self> {
        let (scheme, behind) = uri.split_once("://")?;
        let is_secure = match scheme {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let end = behind.find(['/', '?']).unwrap_or(behind.len());
        let (authority, rest) = behind.split_at(end);
        // Another parser must find the same parts.
        let parsed: Uri = uri.parse().ok()?;
        if authority.contains('@') || parsed.authority()?.as_str() != authority {
            return None;
        }
        let host = parsed.host().filter(|host| !host.is_empty())?;
        let host = &authority[..host.len()];
        let port = &authority[host.len()..];
        let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
        if !port.is_empty() && !port.strip_prefix(':').is_some_and(is_port) {
            return None;
        }
        // Dot segments are resolved by some and not by others.
        let path = rest.split('?').next().unwrap_or_default();
        let climbs = path.split('/').any(|part| {
            matches!(
                part.to_ascii_lowercase().as_str(),
                "." | ".." | "%2e" | "%2e%2e" | ".%2e" | "%2e."
            )
        });
        (!climbs).then_some(Self { is_secure, authority, host, rest })
    }

    fn is_loopback(&self) -> bool {
        LOOPBACK.contains(&self.host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual() -> AuthorizationSettings {
        AuthorizationSettings::default()
    }

    // The redirect URIs of clients as they send them.
    #[test]
    fn the_redirect_uris_of_known_clients_are_sound() {
        for uri in [
            "http://localhost:3118/callback",
            "http://localhost/callback",
            "http://127.0.0.1/callback",
            "http://127.0.0.1:51234/callback/abc",
            "http://[::1]:8080/",
            "https://claude.ai/api/mcp/auth_callback",
            "https://claude.com/api/mcp/auth_callback",
            "https://chatgpt.com/connector/oauth/x1Y2",
            "https://vscode.dev/redirect",
            "http://127.0.0.1:33418/",
            "cursor://anysphere.cursor-mcp/oauth/callback",
            "http://localhost:6274/oauth/callback",
            "https://www.perplexity.ai/rest/connections/oauth_callback?x=1",
        ] {
            assert!(is_sound(uri, &usual()), "{uri}");
        }
    }

    // T7.
    #[test]
    fn a_uri_that_leads_elsewhere_for_some_parser_is_not() {
        for uri in [
            "",
            "/callback",
            "http://c.example/callback",
            "https://",
            "https:///callback",
            "https://c.example/callback#x",
            "https://c.example#x",
            "https://localhost@evil.example/",
            "https://c.example:443@evil.example/",
            "http://localhost@evil.example/callback",
            "http://127.0.0.1.evil.example/callback",
            "http://localhost.evil.example/",
            "http://127.1/callback",
            "http://2130706433/callback",
            "http://0.0.0.0/callback",
            "https://c.example\\@evil.example/",
            "https://c.example/a\\..\\b",
            "https://c.example/../x",
            "https://c.example/%2e%2E/x",
            "https://c.example:0/",
            "https://c.example:99999/",
            "https://c.example:/",
            "https://c example/",
            "https://c.example/\n",
            "https://\u{441}.example/",
            "javascript:alert(1)",
            "JavaScript://c.example/%0aalert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "cursor://evil/oauth/callback",
            "cursor://anysphere.cursor-mcp/oauth/callback/",
            "claude://x",
            "ftp://c.example/",
            "HTTP://localhost/callback",
        ] {
            assert!(!is_sound(uri, &usual()), "{uri}");
        }
        let schemes = AuthorizationSettings {
            allowed_redirect_schemes: vec!["javascript://x".to_owned()],
            ..usual()
        };
        assert!(!is_sound("javascript://x", &schemes));
    }

    #[test]
    fn the_config_narrows_what_is_accepted() {
        let narrow = AuthorizationSettings {
            allowed_redirect_uris: vec![
                "https://claude.ai/api/*".to_owned(),
                "https://c.example/cb".to_owned(),
                "https://open.example*".to_owned(),
            ],
            ..usual()
        };
        assert!(is_sound("https://claude.ai/api/mcp/auth_callback", &narrow));
        assert!(is_sound("https://c.example/cb", &narrow));
        for uri in [
            "https://claude.ai/x",
            "https://c.example/cb2",
            "http://localhost/cb",
            "https://open.example.evil/",
        ] {
            assert!(!is_sound(uri, &narrow), "{uri}");
        }
    }

    #[test]
    fn a_requested_uri_is_the_registered_one_but_for_the_port_on_this_machine() {
        let registered = |known: &[&str], requested: &str| {
            let known: Vec<String> = known.iter().map(|uri| (*uri).to_owned()).collect();
            is_registered(requested, &known)
        };
        let claude = ["http://localhost/callback", "http://127.0.0.1/callback"];
        for requested in [
            "http://localhost/callback",
            "http://localhost:52222/callback",
            "http://127.0.0.1:1/callback",
        ] {
            assert!(registered(&claude, requested), "{requested}");
        }
        for requested in [
            "http://[::1]:1/callback",
            "https://localhost:1/callback",
            "http://localhost:1/callback/",
            "http://localhost:1/callback?x=1",
            "http://localhost:1/Callback",
            "http://localhost.evil.example:1/callback",
            "http://localhost:1@evil.example/callback",
        ] {
            assert!(!registered(&claude, requested), "{requested}");
        }
        let https = ["https://c.example:8443/cb", "https://127.0.0.1:8443/cb"];
        assert!(registered(&https, "https://c.example:8443/cb"));
        for requested in
            ["https://c.example/cb", "https://c.example:8444/cb", "https://127.0.0.1:1/cb"]
        {
            assert!(!registered(&https, requested), "{requested}");
        }
    }

    #[test]
    fn people_see_the_host() {
        assert_eq!(shown_host("https://claude.ai/api/mcp/auth_callback"), "claude.ai");
        assert_eq!(shown_host("http://localhost:3118/callback"), "localhost:3118");
        let cursor = "cursor://anysphere.cursor-mcp/oauth/callback";
        assert_eq!(shown_host(cursor), "cursor: (an application on your computer)");
        assert!(is_local(cursor) && is_local("http://localhost:1/"));
        assert!(!is_local("https://claude.ai/"));
    }
}

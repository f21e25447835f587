//! HTML: text is always escaped, and every page has the same headers.

use std::fmt::Write;

use bytes::Bytes;
use consort_core::escape::escape_line;
use consort_server::RouteBody;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY, RETRY_AFTER,
    SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderValue, Response, StatusCode};

/// The policy of the pages. It has no `form-action`: browsers apply that to every redirect behind a form, and clients are
/// redirected to their own schemes and to this computer.
const POLICY: &str =
    "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Maximum characters of a text of others.
const SHOWN: usize = 200;

/// The style of the pages.
pub(crate) const STYLE: &str = "\
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0; display: grid; place-items: start center; min-height: 100vh; }
main { width: min(34rem, 100% - 2rem); margin: 3rem 0; }
h1 { font-size: 1.4rem; line-height: 1.3; }
h2 { font-size: 1.1rem; margin-top: 2rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1rem; }
dt { opacity: .7; }
dd, td, code { margin: 0; overflow-wrap: anywhere; }
form { margin: 1rem 0; }
label { display: block; margin-bottom: .3rem; }
input[type=password], input[type=text] { width: 100%; box-sizing: border-box; padding: .5rem; font: inherit; }
button { font: inherit; padding: .5rem 1.2rem; margin: .5rem .5rem 0 0; cursor: pointer; }
button.main { font-weight: 600; }
button.plain { padding: .1rem .6rem; margin: 0; }
.warning { border-left: .3rem solid #c60; padding: .3rem .8rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .4rem .6rem .4rem 0; border-bottom: 1px solid #8884; vertical-align: top; }
.key { font-size: 1.1rem; user-select: all; padding: .6rem; display: block; border: 1px solid #8886; }
small { opacity: .75; }
";

/// A page that is being written.
#[derive(Debug)]
pub(crate) struct Page {
    title: String,
    body: String,
    base_path: String,
}

impl Page {
    pub(crate) fn new(base_path: &str, title: &str) -> Self {
        let body = format!("<h1>{}</h1>", escaped(title));
        Self { title: title.to_owned(), body, base_path: base_path.to_owned() }
    }

    /// Adds a paragraph.
    pub(crate) fn text(mut self, text: &str) -> Self {
        let _ = write!(self.body, "<p>{}</p>", escaped(text));
        self
    }

    /// Adds a paragraph that stands out.
    pub(crate) fn warning(mut self, text: &str) -> Self {
        let _ = write!(self.body, "<p class=\"warning\">{}</p>", escaped(text));
        self
    }

    /// Adds a heading.
    pub(crate) fn heading(mut self, text: &str) -> Self {
        let _ = write!(self.body, "<h2>{}</h2>", escaped(text));
        self
    }

    /// Adds names with their values.
    pub(crate) fn facts<'a>(mut self, facts: impl IntoIterator<Item = (&'a str, String)>) -> Self {
        self.body.push_str("<dl>");
        for (name, value) in facts {
            let _ = write!(self.body, "<dt>{}</dt><dd>{}</dd>", escaped(name), escaped(&value));
        }
        self.body.push_str("</dl>");
        self
    }

    /// Adds a text to copy.
    pub(crate) fn secret(mut self, text: &str) -> Self {
        let _ = write!(self.body, "<code class=\"key\">{}</code>", escaped(text));
        self
    }

    /// Adds a form that is sent to a path.
    pub(crate) fn form(mut self, form: &Form) -> Self {
        self.body.push_str(&form.html(&self.base_path));
        self
    }

    /// Adds a link to a path or, if it has a scheme, to a URL.
    pub(crate) fn link(mut self, target: &str, text: &str) -> Self {
        let base = if target.contains("://") { "" } else { self.base_path.as_str() };
        let _ = write!(
            self.body,
            "<p><a href=\"{base}{}\">{}</a></p>",
            attribute(target),
            escaped(text)
        );
        self
    }

    /// Adds a table. A cell is text, or a form.
    pub(crate) fn table(mut self, heads: &[&str], rows: Vec<Vec<Cell>>) -> Self {
        self.body.push_str("<table><tr>");
        for head in heads {
            let _ = write!(self.body, "<th>{}</th>", escaped(head));
        }
        self.body.push_str("</tr>");
        for row in rows {
            self.body.push_str("<tr>");
            for cell in row {
                let content = match cell {
                    Cell::Text(text) => escaped(&text),
                    Cell::Form(form) => form.html(&self.base_path),
                };
                let _ = write!(self.body, "<td>{content}</td>");
            }
            self.body.push_str("</tr>");
        }
        self.body.push_str("</table>");
        self
    }

    /// Returns it as a response.
    pub(crate) fn respond(self, status: StatusCode) -> Response<RouteBody> {
        let Self { title, body, base_path } = self;
        let html = format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\"><title>{} - Consort</title>\
             <link rel=\"stylesheet\" href=\"{base_path}/oauth/pages.css\"></head><body><main>{body}</main></body></html>\n",
            escaped(&title)
        );
        let mut response = respond(status, "text/html; charset=utf-8", html.into());
        let policy = HeaderValue::from_static(POLICY);
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
        response
    }
}

/// A cell of a table.
#[derive(Debug)]
pub(crate) enum Cell {
    /// Text.
    Text(String),
    /// A form.
    Form(Form),
}

/// A form.
#[derive(Debug, Default)]
pub(crate) struct Form {
    action: String,
    fields: String,
}

impl Form {
    /// A form that is sent to a path, with the secret that proves that this page sent it.
    pub(crate) fn new(action: &str, page_token: &str) -> Self {
        let mut form = Self { action: action.to_owned(), fields: String::new() };
        form = form.hidden("page_token", page_token);
        form
    }

    /// Adds a value that is not shown.
    pub(crate) fn hidden(mut self, name: &str, value: &str) -> Self {
        let (name, value) = (attribute(name), attribute(value));
        let _ = write!(self.fields, "<input type=\"hidden\" name=\"{name}\" value=\"{value}\">");
        self
    }

    /// Adds a field for a secret.
    pub(crate) fn password(mut self, name: &str, label: &str) -> Self {
        let name = attribute(name);
        let _ = write!(
            self.fields,
            "<label for=\"{name}\">{}</label><input type=\"password\" id=\"{name}\" name=\"{name}\" \
             autocomplete=\"off\" required>",
            escaped(label)
        );
        self
    }

    /// Adds a field for a text.
    pub(crate) fn field(mut self, name: &str, label: &str) -> Self {
        let name = attribute(name);
        let _ = write!(
            self.fields,
            "<label for=\"{name}\">{}</label><input type=\"text\" id=\"{name}\" name=\"{name}\" \
             maxlength=\"64\" required>",
            escaped(label)
        );
        self
    }

    /// Adds a button that sends the form with an action.
    pub(crate) fn button(mut self, class: &str, action: &str, label: &str) -> Self {
        let (class, action) = (attribute(class), attribute(action));
        let _ = write!(
            self.fields,
            "<button class=\"{class}\" name=\"action\" value=\"{action}\">{}</button>",
            escaped(label)
        );
        self
    }

    fn html(&self, base_path: &str) -> String {
        let action = attribute(&self.action);
        format!("<form method=\"post\" action=\"{base_path}{action}\">{}</form>", self.fields)
    }
}

/// Escapes text: what a terminal or a reader could be misled by is written out, and nothing is markup.
fn escaped(text: &str) -> String {
    let short: String = text.chars().take(SHOWN * 4).collect();
    attribute(&escape_line(&short))
}

fn attribute(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A response that nobody stores.
pub(crate) fn respond(status: StatusCode, kind: &'static str, body: Bytes) -> Response<RouteBody> {
    let mut response = Response::new(RouteBody::Whole(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Without the referrer of a request, its `Origin` would be `null`.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    response
}

/// A redirect of the browser to another page, as a `GET`.
pub(crate) fn see_other(url: &str) -> Response<RouteBody> {
    let mut response = respond(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", Bytes::new());
    match HeaderValue::from_str(url) {
        Ok(location) => {
            response.headers_mut().insert(LOCATION, location);
        }
        // A URL that no header can hold was refused before.
        Err(_) => *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR,
    }
    response
}

/// Adds cookies to a response.
pub(crate) fn with_cookies(
    mut response: Response<RouteBody>,
    cookies: impl IntoIterator<Item = String>,
) -> Response<RouteBody> {
    for cookie in cookies {
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            response.headers_mut().append(SET_COOKIE, cookie);
        }
    }
    response
}

/// Adds the seconds after which to try again.
pub(crate) fn retry_after(mut response: Response<RouteBody>, seconds: u64) -> Response<RouteBody> {
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(page: Page) -> (String, http::HeaderMap) {
        let (head, body) = page.respond(StatusCode::OK).into_parts();
        let RouteBody::Whole(bytes) = body else { panic!("it is whole") };
        (String::from_utf8(bytes.to_vec()).unwrap(), head.headers)
    }

    // T23.
    #[test]
    fn text_of_others_is_never_markup_nor_misleading() {
        let hostile = "<script>alert(1)</script>\u{202e}\u{1b}[31m\"'&";
        // What is sent back must arrive unchanged, so it is only kept from being markup.
        let markup = "<script>alert(1)</script>\"'&";
        let form = Form::new("/x", markup).hidden(markup, markup).button("main", markup, hostile);
        let page = Page::new("", hostile)
            .text(hostile)
            .warning(hostile)
            .heading(hostile)
            .facts([(hostile, hostile.to_owned())])
            .secret(hostile)
            .form(&form)
            .link("/y", hostile)
            .table(&[hostile], vec![vec![Cell::Text(hostile.to_owned())]]);
        let (html, _) = html(page);
        assert!(!html.contains("<script") && !html.contains("alert(1)</"), "{html}");
        assert!(!html.contains('\u{202e}') && !html.contains('\u{1b}'));
        assert!(!html.contains("value=\"<") && !html.contains("\"\"'"));
    }

    #[test]
    fn every_page_has_the_headers_that_protect_it() {
        let (_, headers) = html(Page::new("/base", "Title"));
        for (name, value) in [
            ("content-security-policy", POLICY),
            ("cache-control", "no-store"),
            ("referrer-policy", "same-origin"),
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
        ] {
            assert_eq!(headers[name], value);
        }
        assert!(!POLICY.contains("form-action"));
        assert!(!headers.contains_key("cross-origin-opener-policy"));
    }
}

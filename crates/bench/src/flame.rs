//! Flame graphs: stacks that `perf script` prints, counted, and drawn as SVG.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::plot::escaped;

const WIDTH: f64 = 1200.0;
const ROW: f64 = 16.0;

/// Minimum share of all samples: narrower frames are left out, since they are unreadable and many.
const LEAST: f64 = 0.002;

/// Stacks with a common prefix, counted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Stacks {
    /// Number of samples through this frame.
    count: u64,
    /// Number of samples that end in this frame.
    own: u64,
    inner: BTreeMap<String, Stacks>,
}

impl Stacks {
    /// Parses the output of `perf script -F comm,ip,sym`: a line per sample, below it its frames, innermost first.
    pub(crate) fn read(printed: &str) -> Self {
        let mut stacks = Self::default();
        let mut frames: Vec<String> = Vec::new();
        for line in printed.lines().chain([""]) {
            if line.starts_with(char::is_whitespace) && !line.trim().is_empty() {
                let symbol = line.trim().split_once(' ').map_or("", |(_, symbol)| symbol);
                frames.extend(named(symbol));
            } else if !frames.is_empty() {
                stacks.add(frames.drain(..).rev());
            }
        }
        stacks
    }

    fn add(&mut self, frames: impl Iterator<Item = String>) {
        self.count += 1;
        let mut at = self;
        for frame in frames {
            // A function that calls itself is one frame.
            at = at.inner.entry(frame).or_default();
            at.count += 1;
        }
        at.own += 1;
    }

    pub(crate) fn samples(&self) -> u64 {
        self.count
    }

    /// The functions in which most samples end, each with its share.
    pub(crate) fn own(&self) -> Vec<(String, f64)> {
        let mut own = BTreeMap::new();
        self.each(&mut |name, stacks| *own.entry(name.to_owned()).or_default() += stacks.own);
        ranked(own, self.count)
    }

    /// The functions through which most samples pass, among those whose name is `wanted`.
    pub(crate) fn through(&self, wanted: impl Fn(&str) -> bool) -> Vec<(String, f64)> {
        let mut through = BTreeMap::new();
        self.walk(&mut Vec::new(), &mut |above, name, stacks| {
            if wanted(name) && !above.contains(&name) {
                *through.entry(name.to_owned()).or_default() += stacks.count;
            }
        });
        ranked(through, self.count)
    }

    fn each(&self, see: &mut impl FnMut(&str, &Self)) {
        for (name, inner) in &self.inner {
            see(name, inner);
            inner.each(see);
        }
    }

    fn walk<'a>(
        &'a self,
        above: &mut Vec<&'a str>,
        see: &mut impl FnMut(&[&'a str], &'a str, &'a Self),
    ) {
        for (name, inner) in &self.inner {
            see(above, name, inner);
            above.push(name);
            inner.walk(above, see);
            above.pop();
        }
    }

    fn depth(&self, all: u64) -> u32 {
        let inner = self.inner.values().filter(|inner| part(inner.count, all) >= LEAST);
        inner.map(|inner| 1 + inner.depth(all)).max().unwrap_or(0)
    }

    /// Draws them, the outermost at the bottom; tooltips show the name and share of each.
    pub(crate) fn to_svg(&self, title: &str) -> String {
        let depth = self.depth(self.count);
        let height = f64::from(depth + 1) * ROW + 40.0;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             height=\"{height}\" font-family=\"ui-monospace, monospace\" font-size=\"11\">\n\
             <style>.t {{ fill: #57606a; font-size: 14px }} \
             @media (prefers-color-scheme: dark) {{ .t {{ fill: #adbac7 }} }} g:hover rect {{ stroke: #000 }}\
             </style>\n<text class=\"t\" x=\"4\" y=\"18\">{}, {} samples</text>\n",
            escaped(title),
            self.count
        );
        self.draw(&mut svg, self.count, 0.0, height - ROW - 4.0);
        svg.push_str("</svg>\n");
        svg
    }

    fn draw(&self, svg: &mut String, all: u64, mut left: f64, top: f64) {
        for (name, inner) in &self.inner {
            let part = part(inner.count, all);
            let width = part * WIDTH;
            if part >= LEAST {
                // A string takes everything.
                let _ = write!(
                    svg,
                    "<g><title>{} {:.1} %</title><rect x=\"{left:.1}\" y=\"{top:.0}\" width=\"{width:.1}\" \
                     height=\"15\" rx=\"1\" fill=\"{}\"/>",
                    escaped(name),
                    part * 100.0,
                    colour(name)
                );
                let room = (width / 6.7).floor();
                if room >= 4.0 {
                    let _ = write!(
                        svg,
                        "<text x=\"{:.1}\" y=\"{:.0}\">{}</text>",
                        left + 2.0,
                        top + 11.0,
                        escaped(&cut(name, room))
                    );
                }
                svg.push_str("</g>\n");
                inner.draw(svg, all, left, top - ROW);
            }
            left += width;
        }
    }
}

/// The display name of a function; none for frames without information.
fn named(symbol: &str) -> Option<String> {
    let symbol = symbol.trim();
    let symbol = symbol.split(".llvm.").next().unwrap_or(symbol);
    let symbol = match symbol.rsplit_once("::h") {
        Some((name, hash)) if hash.len() == 16 && hash.bytes().all(|it| it.is_ascii_hexdigit()) => {
            name
        }
        _ => symbol,
    };
    let dull = [
        "[unknown]",
        "<core::pin::Pin",
        "core::ops::function::",
        "<core::panic::unwind_safe::",
        "std::panicking::",
        "std::panic::",
        "std::sys::backtrace::",
        "__rust_try",
        "<alloc::boxed::Box",
    ];
    (!symbol.is_empty() && !dull.iter().any(|dull| symbol.starts_with(dull)))
        .then(|| symbol.to_owned())
}

fn ranked(counts: BTreeMap<String, u64>, all: u64) -> Vec<(String, f64)> {
    let mut ranked: Vec<_> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
    ranked.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    ranked.into_iter().map(|(name, count)| (name, part(count, all))).collect()
}

#[expect(clippy::cast_precision_loss, reason = "samples are far fewer than 2^52")]
fn part(count: u64, all: u64) -> f64 {
    count as f64 / all.max(1) as f64
}

/// As much of the end of the name as fits.
fn cut(name: &str, room: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few hundred")]
    let room = room as usize;
    let length = name.chars().count();
    if length <= room {
        return name.to_owned();
    }
    let end: String = name.chars().skip(length - room + 1).collect();
    format!("…{end}")
}

/// The colour of a frame: Consort, dependencies or kernel, light enough for black letters.
fn colour(name: &str) -> &'static str {
    if name.contains("consort") || name.contains("bench::") {
        "#e8a15c"
    } else if name.contains("hyper") || name.contains("http") {
        "#8fb8de"
    } else if name.contains("tokio") || name.contains("mio::") {
        "#a5cfa1"
    } else if name.contains("::") || name.starts_with('<') {
        "#d8c27a"
    } else {
        "#c9c9cf"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "consort \n\
        \t    55 consort_protocol::json::scan::h0123456789abcdef\n\
        \t    54 [unknown]\n\
        \t    53 tokio::park.llvm.77\n\
        \n\
        consort \n\
        \t    57 memcpy\n\
        \t    55 consort_protocol::json::scan::hfedcba9876543210\n\
        \t    53 tokio::park\n\
        \n\
        consort \n\
        \t    53 tokio::park\n";

    #[test]
    fn stacks_that_begin_alike_are_counted_together() {
        let stacks = Stacks::read(PRINTED);
        assert_eq!(stacks.samples(), 3);
        let third = 1.0 / 3.0;
        assert_eq!(
            stacks.own(),
            [
                ("consort_protocol::json::scan".to_owned(), third),
                ("memcpy".to_owned(), third),
                ("tokio::park".to_owned(), third),
            ]
        );
        assert_eq!(
            stacks.through(|name| name != "memcpy"),
            [
                ("tokio::park".to_owned(), 1.0),
                ("consort_protocol::json::scan".to_owned(), 2.0 * third)
            ]
        );
    }

    #[test]
    fn a_function_that_calls_itself_is_counted_once() {
        let stacks = Stacks::read("a\n\t 1 f\n\t 1 g\n\t 1 f\n");
        assert_eq!(stacks.through(|name| name == "f"), [("f".to_owned(), 1.0)]);
    }

    #[test]
    fn every_frame_that_can_be_seen_is_drawn() {
        let svg = Stacks::read(PRINTED).to_svg("a & b");
        assert_eq!(svg.matches("<rect").count(), 3);
        assert!(svg.contains("a &amp; b, 3 samples"));
        assert_eq!(cut("consort::call", 6.0), "…:call");
    }
}

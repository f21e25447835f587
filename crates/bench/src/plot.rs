//! Plots as SVG: panels over a common logarithmic axis, legible at 640 pixels on light and dark backgrounds.

use std::fmt::Write as _;

const WIDTH: f64 = 640.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const HEAD: f64 = 34.0;
const PANEL: f64 = 150.0;
const GAP: f64 = 36.0;
const FOOT: f64 = 26.0;

/// Line colours that are distinct on white and on black, also with red-green colour blindness.
const COLOURS: [&str; 3] = ["#3b82c4", "#d9822b", "#7b68c8"];

/// A range whose ends are further apart than this is drawn logarithmically.
const WIDE: f64 = 20.0;

/// Lines of one unit.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    pub(crate) title: String,
    /// Each with its name; a point is a position on the common axis and a value.
    pub(crate) lines: Vec<(String, Vec<(f64, f64)>)>,
}

/// An axis: its range and scale.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Axis {
    Linear { most: f64 },
    Logarithmic { least: f64, most: f64 },
}

impl Axis {
    /// An axis that covers all of these values, which are not negative.
    fn over(values: impl Iterator<Item = f64> + Clone) -> Self {
        let most = values.clone().fold(0.0, f64::max);
        let least = values.filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
        if least.is_finite() && most / least > WIDE {
            Self::Logarithmic { least: decade(least, f64::floor), most: decade(most, f64::ceil) }
        } else {
            Self::Linear { most: rounded(most) }
        }
    }

    /// Returns the position of a value, from 0 to 1.
    fn place(self, value: f64) -> f64 {
        match self {
            Self::Linear { most } => value / most,
            Self::Logarithmic { least, most } => {
                (value.max(least) / least).log10() / (most / least).log10()
            }
        }
    }

    /// The values of its labels.
    fn ticks(self) -> Vec<f64> {
        match self {
            Self::Linear { most } => (0..=4_u8).map(|n| most * f64::from(n) / 4.0).collect(),
            Self::Logarithmic { least, most } => {
                let mut ticks = vec![least];
                while let Some(last) = ticks.last().copied().filter(|last| *last < most * 0.99) {
                    ticks.push(last * 10.0);
                }
                ticks
            }
        }
    }
}

/// The power of ten below or above.
fn decade(value: f64, to: fn(f64) -> f64) -> f64 {
    10_f64.powf(to(value.log10()))
}

/// The next round number: 1, 2, 4, 6 or 8 times a power of ten, so that its quarters are short.
fn rounded(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let unit = decade(value, f64::floor);
    let steps = [1.0, 2.0, 4.0, 6.0, 8.0, 10.0];
    unit * steps.into_iter().find(|step| value <= unit * step).unwrap_or(10.0)
}

fn written(value: f64) -> String {
    let short =
        |value: f64| format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').to_owned();
    if value >= 1e6 {
        format!("{}M", short(value / 1e6))
    } else if value >= 1e4 {
        format!("{}k", short(value / 1e3))
    } else {
        short(value)
    }
}

/// Draws the panels over an axis labelled `along`.
pub(crate) fn plot(title: &str, along: &str, panels: &[Panel]) -> String {
    let points = || panels.iter().flat_map(|panel| &panel.lines).flat_map(|(_, points)| points);
    let across = match Axis::over(points().map(|(at, _)| *at)) {
        // Tight: the ends are points.
        Axis::Logarithmic { .. } => Axis::Logarithmic {
            least: points().map(|(at, _)| *at).fold(f64::INFINITY, f64::min),
            most: points().map(|(at, _)| *at).fold(0.0, f64::max),
        },
        linear @ Axis::Linear { .. } => linear,
    };
    let count = f64::from(u32::try_from(panels.len()).unwrap_or(u32::MAX));
    let height = HEAD + count * (PANEL + GAP) + FOOT;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n\
         <style>text {{ fill: #57606a }} .grid {{ stroke: #8b949e; stroke-opacity: .3 }} \
         @media (prefers-color-scheme: dark) {{ text {{ fill: #adbac7 }} }}</style>\n\
         <text x=\"{LEFT}\" y=\"20\" font-size=\"15\">{}</text>\n",
        escaped(title)
    );
    let mut top = HEAD;
    for panel in panels {
        draw(&mut svg, panel, across, top);
        top += PANEL + GAP;
    }
    // A string takes everything.
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n</svg>",
        WIDTH - RIGHT,
        height - 8.0,
        escaped(along)
    );
    svg
}

fn draw(svg: &mut String, panel: &Panel, across: Axis, top: f64) {
    let (top, bottom) = (top + GAP - 12.0, top + GAP - 12.0 + PANEL);
    let values = panel.lines.iter().flat_map(|(_, points)| points).map(|(_, value)| *value);
    let up = Axis::over(values);
    let x = |at: f64| LEFT + across.place(at) * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| bottom - up.place(value) * PANEL;
    let _ =
        writeln!(svg, "<text x=\"{LEFT}\" y=\"{:.0}\">{}</text>", top - 8.0, escaped(&panel.title));
    for tick in up.ticks() {
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{1:.1}\" y2=\"{1:.1}\"/>\
             <text x=\"{2}\" y=\"{3:.1}\" text-anchor=\"end\">{4}</text>",
            WIDTH - RIGHT,
            y(tick),
            LEFT - 6.0,
            y(tick) + 4.0,
            written(tick)
        );
    }
    let mut ats: Vec<f64> =
        panel.lines.iter().flat_map(|(_, points)| points).map(|(at, _)| *at).collect();
    ats.sort_by(f64::total_cmp);
    ats.dedup();
    for at in ats {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            x(at),
            bottom + 15.0,
            written(at)
        );
    }
    for (n, (name, points)) in panel.lines.iter().enumerate() {
        let colour = COLOURS[n % COLOURS.len()];
        let path: Vec<String> =
            points.iter().map(|(at, value)| format!("{:.1},{:.1}", x(*at), y(*value))).collect();
        let _ = writeln!(
            svg,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>",
            path.join(" ")
        );
        for (at, value) in points {
            let _ = writeln!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"><title>{}: {}</title></circle>",
                x(*at),
                y(*value),
                written(*at),
                written(*value)
            );
        }
        if panel.lines.len() > 1 {
            let shift = 96.0 * f64::from(u32::try_from(panel.lines.len() - n).unwrap_or(1));
            let at = WIDTH - RIGHT - shift;
            let _ = writeln!(
                svg,
                "<circle cx=\"{at}\" cy=\"{0:.0}\" r=\"4\" fill=\"{colour}\"/>\
                 <text x=\"{1}\" y=\"{2:.0}\">{3}</text>",
                top - 12.0,
                at + 8.0,
                top - 8.0,
                escaped(name)
            );
        }
    }
}

/// Escapes a text for SVG.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_range_is_logarithmic_and_a_narrow_one_begins_at_nothing() {
        let wide = Axis::over([3.0, 2000.0].into_iter());
        assert_eq!(wide, Axis::Logarithmic { least: 1.0, most: 10_000.0 });
        assert_eq!(wide.ticks(), [1.0, 10.0, 100.0, 1000.0, 10_000.0]);
        assert!((wide.place(100.0) - 0.5).abs() < 1e-9);
        let narrow = Axis::over([30.0, 35.0].into_iter());
        assert_eq!(narrow, Axis::Linear { most: 40.0 });
        assert_eq!(narrow.ticks(), [0.0, 10.0, 20.0, 30.0, 40.0]);
        assert_eq!(Axis::over([0.0].into_iter()), Axis::Linear { most: 1.0 });
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [0.25, 3.0, 1500.0, 10_000.0, 2.5e6].map(written),
            ["0.25", "3", "1500", "10k", "2.5M"]
        );
    }

    #[test]
    fn every_point_is_in_the_picture() {
        let points = vec![(1.0, 1.0), (10.0, 2.0), (100.0, 300.0)];
        let panel = Panel { title: "a < b".to_owned(), lines: vec![("one".to_owned(), points)] };
        let svg = plot("Title", "things", &[panel]);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(svg.contains("a &lt; b"));
        // The ends of the common axis are its first and its last point.
        assert!(svg.contains("points=\"64.0,") && svg.contains(" 624.0,"));
    }
}

//! Progress bars on a terminal.

use indicatif::{ProgressBar, ProgressStyle};

use super::TerminalText;

/// A style with a spinner and the elapsed time before this template.
pub(crate) fn moving(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(&format!("{{spinner}} {{elapsed}} {template}"));
    style.unwrap_or_else(|_| ProgressStyle::default_spinner()).progress_chars("=> ")
}

/// Shows a text beside a bar.
pub(crate) fn label(bar: &ProgressBar, text: impl Into<TerminalText>) {
    bar.set_message(text.into().as_str().to_owned());
}

/// Shows a text before a bar.
pub(crate) fn set_prefix(bar: &ProgressBar, text: impl Into<TerminalText>) {
    bar.set_prefix(text.into().as_str().to_owned());
}

/// Moves a bar to the progress reported by a server, if it has a total. The bar counts thousandths, since servers may
/// report any numbers.
pub(crate) fn advance(bar: &ProgressBar, template: &str, progress: f64, total: Option<f64>) {
    let Some(total) = total.filter(|total| *total > 0.0) else { return };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a thousand"
    )]
    let share = (progress / total * 1000.0).clamp(0.0, 1000.0) as u64;
    bar.set_style(moving(template));
    bar.set_length(1000);
    bar.set_position(share);
}

//! Token cost of each profile, by exposure.

use consort::shaping::{Layers, Shaping};
use consort_core::{Caller, Catalog};
use consort_models::tokens::{TokenVocabulary, costs};
use consort_shape::Exposure;
use serde::Serialize;

/// Token cost of an exposure of a profile before the first call.
#[derive(Serialize)]
pub(crate) struct Shown {
    pub(crate) profile: Option<String>,
    pub(crate) exposure: &'static str,
    pub(crate) tools: usize,
    pub(crate) tokens: usize,
    /// True if the config selects it.
    pub(crate) chosen: bool,
}

/// Every exposure of everything, and then of each profile. Counting tokens is slow.
pub(crate) fn exposures(
    shaping: &Shaping,
    layers: &Layers<'_>,
    caller: &Caller,
    vocabulary: TokenVocabulary,
) -> Vec<Shown> {
    let cost = |catalog: &Catalog| {
        costs(vocabulary, catalog).iter().map(|cost| cost.tokens).sum::<usize>()
    };
    let profiles = std::iter::once(None).chain(shaping.profiles().map(Some));
    let mut shown = Vec::new();
    for profile in profiles {
        let chosen = layers.shown(profile).map(|toolbox| toolbox.catalog(caller));
        for exposure in Exposure::ALL {
            let Some(toolbox) = layers.shown_as(profile, exposure) else { continue };
            let catalog = toolbox.catalog(caller);
            let same = |chosen: &Catalog| chosen.tools.entries() == catalog.tools.entries();
            shown.push(Shown {
                profile: profile.map(str::to_owned),
                exposure: exposure.as_str(),
                tools: catalog.tools.len(),
                tokens: cost(&catalog),
                chosen: chosen.as_deref().is_some_and(same),
            });
        }
    }
    shown
}

//! Profiles, and the token cost of each by exposure.

use crate::blocking::aside;
use crate::profile_costs::Profile;
use crate::route::{Asked, Nothing, Refusal, Route, Told, get};
use crate::state::Console;

pub(crate) fn routes() -> Vec<Route> {
    vec![get("/api/profiles", "What each profile offers, and what that costs a model.", list)]
}

async fn list(console: Console, _: Asked, _: Nothing) -> Result<Told<Vec<Profile>>, Refusal> {
    let profiles = move || {
        let inner = &console.0;
        inner.profiles.of(&inner.hub, &console.scene())
    };
    Ok(Told(aside(profiles).await?.to_vec()))
}

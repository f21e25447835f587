//! Memory that large messages took, given back to the system.

use std::convert::Infallible;
use std::time::Duration;

use consort_wire::MemoryBudget;

/// How long there must be no large message before memory is given back.
const QUIET: Duration = Duration::from_secs(1);

/// Gives memory back whenever large messages came and come no more. An allocator keeps it otherwise: it purges when
/// it is used, and a gateway at rest does not use it.
pub(super) async fn give_back(budget: &MemoryBudget) -> Infallible {
    let usage = || (budget.messages(), budget.available());
    let (mut seen, mut purged) = (usage(), usage());
    loop {
        tokio::time::sleep(QUIET).await;
        let now = usage();
        if now == seen && now != purged {
            purged = now;
            collect();
        }
        seen = now;
    }
}

/// Has the allocator return what is free to the system.
fn collect() {
    #[expect(unsafe_code, reason = "the crate `mimalloc` does not pass this function on")]
    unsafe extern "C" {
        safe fn mi_collect(force: bool);
    }
    mi_collect(true);
}
